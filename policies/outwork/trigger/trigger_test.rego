package outwork.trigger_test

import data.outwork.trigger

_settings := {
	"allowed": {"create": ["executor", "operator"], "delete": ["product"]},
	"ask": ["webhook"],
	"denied": [],
}

_question(changes) := object.union(
	{
		"scope": {"user": "ada"},
		"actor": {"user": "ada", "roles": ["user"]},
		"origin": "interactive",
		"action": "create",
		"caller": "operator",
		"source": "schedule",
	},
	changes,
)

_codes(reasons) := {reason.code | some reason in reasons}

_allowed(changes) := codes if {
	reasons := trigger.allow with input as _question(changes) with data.settings.trigger as _settings
	codes := _codes(reasons)
}

_asked(changes) := codes if {
	reasons := trigger.ask with input as _question(changes) with data.settings.trigger as _settings
	codes := _codes(reasons)
}

_denied(changes, level, sources) := codes if {
	reasons := trigger.deny with input as _question(changes)
		with data.settings.trigger as object.union(_settings, {"denied": sources})
		with data.settings.strictness.level as level
	codes := _codes(reasons)
}

test_success_allowed[note] if {
	some note, changes in {
		"made by an operator": {},
		"made by an executor": {"caller": "executor"},
		"taken away by the product": {"action": "delete", "caller": "product"},
	}
	_allowed(changes) == {"trigger_allowed"}
}

test_fail_not_allowed[note] if {
	some note, changes in {
		"made by the product": {"caller": "product"},
		"taken away by an operator": {"action": "delete"},
		"an unknown caller": {"caller": "guest"},
		"an unknown action": {"action": "pause"},
	}
	_allowed(changes) == set()
}

test_success_asks[note] if {
	some note, row in {
		"a source that asks": {"changes": {"source": "webhook"}, "codes": {"trigger_source_asks"}},
		"an executor": {"changes": {"caller": "executor"}, "codes": {"trigger_by_executor"}},
		"both": {"changes": {"source": "webhook", "caller": "executor"}, "codes": {"trigger_source_asks", "trigger_by_executor"}},
	}
	_asked(row.changes) == row.codes
}

test_fail_does_not_ask[note] if {
	some note, changes in {
		"another source": {},
		"taking away": {"action": "delete", "source": "webhook"},
		"taken away by an executor": {"action": "delete", "caller": "executor"},
	}
	_asked(changes) == set()
}

test_fail_denied[note] if {
	some note, row in {
		"for another": {"changes": {"actor": {"user": "bob"}}, "sources": [], "codes": {"trigger_of_another"}},
		"another's, taken away": {"changes": {"actor": {"user": "bob"}, "action": "delete"}, "sources": [], "codes": {"trigger_of_another"}},
		"its source": {"changes": {}, "sources": ["schedule"], "codes": {"trigger_source_denied"}},
		"by a trigger's run": {"changes": {"caller": "executor", "origin": "trigger"}, "sources": [], "codes": {"trigger_breeds"}},
	}
	_denied(row.changes, "strict", row.sources) == row.codes
}

test_success_not_denied[note] if {
	some note, row in {
		"one's own": {"changes": {}, "sources": [], "level": "strict"},
		"another source": {"changes": {}, "sources": ["webhook"], "level": "strict"},
		"taking away what a denied source has made": {"changes": {"action": "delete"}, "sources": ["schedule"], "level": "strict"},
		"balanced": {"changes": {"caller": "executor", "origin": "trigger"}, "sources": [], "level": "balanced"},
		"by a person's run": {"changes": {"caller": "executor"}, "sources": [], "level": "strict"},
		"by the product, after a trigger": {"changes": {"caller": "product", "origin": "trigger"}, "sources": [], "level": "strict"},
		"taken away by a trigger's run": {
			"changes": {"caller": "executor", "origin": "trigger", "action": "delete"},
			"sources": [],
			"level": "strict",
		},
	}
	_denied(row.changes, row.level, row.sources) == set()
}
