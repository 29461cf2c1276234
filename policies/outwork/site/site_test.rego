package outwork.site_test

import data.outwork.site

_reason := {"code": "site_says_so", "message": "The site says so."}

test_success_denies[kind] if {
	some kind in ["call", "placement", "approval", "egress", "trigger"]
	reasons := site.deny with input as {"kind": kind} with data.site as {kind: {"deny": [_reason]}}
	reasons == {_reason}
}

test_fail_denies_another_kind[kind] if {
	some kind in ["call", "placement", "approval", "egress", "trigger"]
	reasons := site.deny with input as {"kind": "teleport"} with data.site as {kind: {"deny": [_reason]}}
	reasons == set()
}

test_success_asks[kind] if {
	some kind in ["call", "trigger"]
	reasons := site.ask with input as {"kind": kind} with data.site as {kind: {"ask": [_reason]}}
	reasons == {_reason}
	denials := site.deny with input as {"kind": kind} with data.site as {kind: {"ask": [_reason]}}
	denials == set()
}

test_fail_asks_in_vain[kind] if {
	some kind in ["egress", "placement", "approval"]
	reasons := site.deny with input as {"kind": kind} with data.site as {kind: {"ask": [_reason]}}
	{reason.code | some reason in reasons} == {"ask_is_deny"}
	asks := site.ask with input as {"kind": kind} with data.site as {kind: {"ask": [_reason]}}
	asks == set()
}

_obliged(obligation) := {"obligations": obligations, "deny": {reason.code | some reason in denied}} if {
	obligations := site.obligations with input as {"kind": "call"} with data.site as {"call": {"obligations": [obligation]}}
	denied := site.deny with input as {"kind": "call"} with data.site as {"call": {"obligations": [obligation]}}
}

test_success_tightens[note] if {
	some note, obligation in {
		"output": {"kind": "output_limit", "bytes": 1},
		"time": {"kind": "reserve", "wall_ms": 1},
		"class": {"kind": "effect_class", "class": "once"},
		"leaks": {"kind": "leaks", "exact": "block", "shapes": "block"},
		"redact": {"kind": "redact"},
		"audit": {"kind": "audit"},
	}
	_obliged(obligation) == {"obligations": {obligation}, "deny": set()}
}

test_fail_loosens[note] if {
	some note, obligation in {
		"pure": {"kind": "effect_class", "class": "pure"},
		"idempotent": {"kind": "effect_class", "class": "idempotent"},
		"unknown": {"kind": "release_everything"},
	}
	_obliged(obligation).deny == {"site_obligation_refused"}
}

test_success_nothing_without_a_site[kind] if {
	some kind in ["call", "placement", "approval", "egress", "trigger"]
	reasons := site.deny with input as {"kind": kind}
	reasons == set()
}
