package outwork.call_test

import data.outwork.call

_allowed := {"fs.read": ["product", "operator"]}

test_success_listed_caller if {
	reasons := call.allow with input as {"capability": "fs.read", "caller": "operator"} with data.settings.call.allowed as _allowed
	reasons == {{"code": "capability_allowed", "message": "fs.read is allowed for operator."}}
}

test_fail_unlisted[note] if {
	some note, question in {
		"caller": {"capability": "fs.read", "caller": "executor"},
		"capability": {"capability": "fs.write", "caller": "operator"},
	}
	reasons := call.allow with input as question with data.settings.call.allowed as _allowed
	reasons == set()
}
