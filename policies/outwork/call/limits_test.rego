package outwork.call_test

import data.outwork.call

_limits := {"shell.exec": {"output_bytes": 4096, "wall_ms": 1000}, "fs.read": {"output_bytes": 2048}}

_limited(capability) := obligations if {
	obligations := call.obligations with input as {"capability": capability} with data.settings.call.limits as _limits
}

test_success_both_limits if {
	_limited("shell.exec") == {{"kind": "output_limit", "bytes": 4096}, {"kind": "reserve", "wall_ms": 1000}}
}

test_success_one_limit if _limited("fs.read") == {{"kind": "output_limit", "bytes": 2048}}

test_fail_no_limit if _limited("fs.write") == set()
