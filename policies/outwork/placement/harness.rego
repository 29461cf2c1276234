package outwork.placement

# METADATA
# title: A foreign harness in the kernel process
# description: In host-loop-shell the loop runs inside the kernel, so only our own guest code may be that loop.
# custom:
#   code: harness_needs_sandbox
#   threat: hostile-harness
#   solution: Choose disposable-per-run or persistent-per-user for this harness.
deny contains {
	"code": rego.metadata.rule().custom.code,
	"message": concat("", ["Harness ", input.harness, " is not ours: it runs in a sandboxed placement only."]),
} if {
	input.placement == "host-loop-shell"
	not input.harness in data.settings.placement.own_harnesses
}
