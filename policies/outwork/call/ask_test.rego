package outwork.call_test

import data.outwork.call

test_success_listed_capability_asks if {
	reasons := call.ask with input as {"capability": "message.post"} with data.settings.call.ask as ["message.post"]
	{reason.code | some reason in reasons} == {"approval_required"}
}

test_fail_other_capability_does_not_ask if {
	reasons := call.ask with input as {"capability": "fs.read"} with data.settings.call.ask as ["message.post"]
	reasons == set()
}
