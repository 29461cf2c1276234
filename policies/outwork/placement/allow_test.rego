package outwork.placement_test

import data.outwork.placement

_codes(reasons) := {reason.code | some reason in reasons}

test_success_listed_placement if {
	reasons := placement.allow with input as {"placement": "host-loop-shell"}
		with data.settings.placement.allowed as ["host-loop-shell"]
	_codes(reasons) == {"placement_allowed"}
}

test_fail_unlisted_placement if {
	reasons := placement.allow with input as {"placement": "moon"} with data.settings.placement.allowed as ["host-loop-shell"]
	reasons == set()
}
