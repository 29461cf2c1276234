package outwork.call

# METADATA
# title: A capability that is listed for approval
# custom:
#   code: approval_required
#   threat: prompt-injection
#   solution: Have an approver answer, or take the capability out of `ask` in data/call.yaml.
ask contains {
	"code": rego.metadata.rule().custom.code,
	"message": concat("", [input.capability, " needs an approval."]),
} if {
	input.capability in data.settings.call.ask
}
