package outwork.call

# METADATA
# title: A credentialed call in a context that holds another person's text
# description: |
#   Whoever wrote into the thread may have asked for this, and it would be done with the actor's credential and matter twice. Under `balanced`
#   the people of a thread trust each other, so it goes on: asking at every such call of a shared thread teaches to say yes unread. What the credential
#   may be used for is bounded by its recipe either way.
# custom:
#   code: credentialed_foreign_text
#   threat: prompt-injection
#   solution: Have an approver answer, run it in a thread of the actor's own, or choose `balanced` in data/strictness.yaml.
ask contains {
	"code": rego.metadata.rule().custom.code,
	"message": concat("", [
		"This uses the credential ",
		input.recipe,
		", and others have written in this thread: ",
		concat(", ", sort(input.other_actors)),
		".",
	]),
} if {
	data.settings.strictness.level == "strict"
	input.credential != "none"
	input.effect_class == "once"
	count(input.other_actors) > 0
}
