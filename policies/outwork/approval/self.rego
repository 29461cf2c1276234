package outwork.approval

# METADATA
# title: An approver approves an ask of their own
# description: Four eyes, under `strict`. Whoever an agent acts for could have been talked into what it asks.
# custom:
#   code: self_approval
#   threat: prompt-injection
#   solution: Have another approver answer, or choose `balanced` in data/strictness.yaml.
deny contains {
	"code": rego.metadata.rule().custom.code,
	"message": "An ask is approved by somebody other than the user it acts for.",
} if {
	data.settings.strictness.level == "strict"
	input.answer == "approve"
	input.approver.user == input.actor.user
}
