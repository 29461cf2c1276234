package outwork.call_test

import data.outwork.call

_credentialed := {
	"capability": "shell.exec",
	"origin": "interactive",
	"effect_class": "once",
	"sandbox_origins": ["interactive"],
	"other_actors": ["carl", "bob"],
	"credential": "present",
	"recipe": "github",
}

_questioned(change, level) := reasons if {
	reasons := call.ask with input as object.union(_credentialed, change) with data.settings.strictness.level as level with data.settings.call.ask as []
}

test_success_asks_and_names_credential_and_people if {
	message := "This uses the credential github, and others have written in this thread: bob, carl."
	_questioned({}, "strict") == {{"code": "credentialed_foreign_text", "message": message}}
}

# The gate of a missing credential comes before the ask; when it opens, the answer is the same.
test_success_asks_of_a_missing_credential_too if count(_questioned({"credential": "missing"}, "strict")) == 1

test_fail_does_not_ask_beside_foreign_text[note] if {
	some note, row in {
		"balanced": {"change": {}, "level": "balanced"},
		"nobody else has written": {"change": {"other_actors": []}, "level": "strict"},
		"no credential": {"change": {"credential": "none", "recipe": ""}, "level": "strict"},
		"an effect that may happen twice": {"change": {"effect_class": "idempotent"}, "level": "strict"},
	}
	_questioned(row.change, row.level) == set()
}
