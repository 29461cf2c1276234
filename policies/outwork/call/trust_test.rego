package outwork.call_test

import data.outwork.call

_command := {"capability": "shell.exec", "origin": "interactive", "sandbox_origins": ["interactive", "trigger"]}

_asked(change, level) := {reason.code | some reason in reasons} if {
	reasons := call.ask with input as object.union(_command, change) with data.settings.strictness.level as level with data.settings.call.ask as []
}

test_success_asks if _asked({}, "strict") == {"sandbox_served_trigger"}

test_fail_does_not_ask[note] if {
	some note, row in {
		"balanced": {"change": {}, "level": "balanced"},
		"a trigger's own run": {"change": {"origin": "trigger"}, "level": "strict"},
		"no trigger was served": {"change": {"sandbox_origins": ["interactive"]}, "level": "strict"},
		"another capability": {"change": {"capability": "fs.read"}, "level": "strict"},
	}
	_asked(row.change, row.level) == set()
}
