package outwork.placement_test

import data.outwork.placement

_hosted(where, harness) := codes if {
	reasons := placement.deny with input as {"placement": where, "harness": harness, "profile": "development"}
		with data.settings.placement as {"own_harnesses": ["native"], "reviewed": []}
	codes := _codes(reasons)
}

test_fail_foreign_harness_in_the_kernel if _hosted("host-loop-shell", "acme") == {"harness_needs_sandbox"}

test_success_own_harness_in_the_kernel if _hosted("host-loop-shell", "native") == set()

test_success_foreign_harness_in_a_sandbox if _hosted("disposable-per-run", "acme") == set()
