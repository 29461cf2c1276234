package outwork.approval_test

import data.outwork.approval

_codes(reasons) := {reason.code | some reason in reasons}

_question(answer, user, roles) := {
	"answer": answer,
	"actor": {"user": "ada", "roles": ["user"]},
	"approver": {"user": user, "roles": roles},
}

_allowed(question) := codes if {
	reasons := approval.allow with input as question
	codes := _codes(reasons)
}

_denied(question, level) := codes if {
	reasons := approval.deny with input as question with data.settings.strictness.level as level
	codes := _codes(reasons)
}

test_success_approver[answer] if {
	some answer in ["approve", "deny"]
	_allowed(_question(answer, "bob", ["user", "approver"])) == {"approver_answers"}
}

test_fail_other_roles[role] if {
	some role in ["user", "operator", "policy"]
	_allowed(_question("approve", "bob", [role])) == set()
}

test_fail_an_answer_that_is_none if _allowed(_question("maybe", "bob", ["approver"])) == set()

test_success_taken_back if _allowed(_question("deny", "ada", ["user"])) == {"own_ask_taken_back"}

test_fail_not_taken_back[note] if {
	some note, question in {
		"approving is not": _question("approve", "ada", ["user"]),
		"another's": _question("deny", "bob", ["user"]),
	}
	_allowed(question) == set()
}

test_fail_self_approval if _denied(_question("approve", "ada", ["approver"]), "strict") == {"self_approval"}

test_success_not_self_approval[note] if {
	some note, row in {
		"balanced": {"question": _question("approve", "ada", ["approver"]), "level": "balanced"},
		"another's": {"question": _question("approve", "bob", ["approver"]), "level": "strict"},
		"denied": {"question": _question("deny", "ada", ["approver"]), "level": "strict"},
	}
	_denied(row.question, row.level) == set()
}
