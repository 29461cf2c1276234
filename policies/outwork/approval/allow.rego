# METADATA
# title: Questions about who may answer an ask
# scope: package
# schemas:
#   - input: schema.input.approval
#   - data.settings.strictness: schema.settings.strictness
package outwork.approval

# METADATA
# title: An approver answers
# custom:
#   code: approver_answers
#   threat: unauthorised-approval
#   solution: Give the person the role approver.
allow contains {
	"code": rego.metadata.rule().custom.code,
	"message": concat("", [input.approver.user, " is an approver."]),
} if {
	"approver" in input.approver.roles
	input.answer in {"approve", "deny"}
}

# METADATA
# title: A user takes an ask of their own back
# custom:
#   code: own_ask_taken_back
#   threat: unauthorised-approval
#   solution: Only denying is free; approving needs the role approver.
allow contains {
	"code": rego.metadata.rule().custom.code,
	"message": concat("", [input.approver.user, " takes an ask of their own back."]),
} if {
	input.answer == "deny"
	input.approver.user == input.actor.user
}
