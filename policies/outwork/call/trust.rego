package outwork.call

# METADATA
# title: A person's command in a sandbox that has served a trigger
# description: |
#   What a trigger's run has left behind (files, HOME, background processes) was made without anybody looking, and this command would run
#   among it with a person's trust. Made anew (`sandbox reset`, or the placement disposable-per-run), the sandbox has served no trigger. Only under
#   `strict`.
# custom:
#   code: sandbox_served_trigger
#   threat: leftover-of-lower-trust
#   solution: Have the sandbox made anew, run under disposable-per-run, or choose `balanced` in data/strictness.yaml.
ask contains {
	"code": rego.metadata.rule().custom.code,
	"message": "This sandbox has served a run that a trigger started.",
} if {
	data.settings.strictness.level == "strict"
	input.capability == "shell.exec"
	input.origin != "trigger"
	"trigger" in input.sandbox_origins
}
