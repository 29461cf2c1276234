package outwork.call_test

import data.outwork.call

_leaks := {"shell.exec": {"exact": "block", "shapes": "redact"}}

_held(capability) := obligations if {
	obligations := call.obligations with input as {"capability": capability} with data.settings.call.leaks as _leaks
}

test_success_terms_of_the_capability if {
	_held("shell.exec") == {{"kind": "leaks", "exact": "block", "shapes": "redact"}}
}

test_fail_no_terms if _held("fs.read") == set()
