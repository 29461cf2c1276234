package outwork.call_test

import data.outwork.call

_effects := {
	"plain_env": ["LANG"],
	"programs": {
		"git": [
			{"words": ["log"], "class": "pure", "flags": "n", "options": ["--oneline"], "prefixes": ["--since="], "operands": true},
			{"words": ["status"], "class": "idempotent", "flags": "", "options": [], "prefixes": [], "operands": false},
		],
		"both": [
			{"words": [], "class": "pure", "flags": "", "options": [], "prefixes": [], "operands": true},
			{"words": [], "class": "idempotent", "flags": "", "options": [], "prefixes": [], "operands": true},
		],
	},
}

_shell(changes) := object.union(
	{
		"capability": "shell.exec",
		"effect_class": "once",
		"credential": "none",
		"args": {"argv": ["git", "log"], "argv_length": 2, "env": [], "background": false},
	},
	changes,
)

_argv(argv) := _shell({"args": {"argv": argv, "argv_length": count(argv)}})

_lowered(question) := classes if {
	obligations := call.obligations with input as question with data.settings.effects as _effects
	classes := {obligation.class | some obligation in obligations}
}

test_success_lowered[note] if {
	some note, row in {
		"word": {"argv": ["git", "log"], "class": "pure"},
		"by system path": {"argv": ["/usr/bin/git", "log"], "class": "pure"},
		"option": {"argv": ["git", "log", "--oneline"], "class": "pure"},
		"prefix and operand": {"argv": ["git", "log", "--since=1d", "HEAD"], "class": "pure"},
		"flag with a value": {"argv": ["git", "log", "-n", "5"], "class": "pure"},
		"idempotent": {"argv": ["git", "status"], "class": "idempotent"},
		"two promises, the weaker counts": {"argv": ["both"], "class": "idempotent"},
	}
	_lowered(_argv(row.argv)) == {row.class}
}

test_success_plain_environment if {
	_lowered(_shell({"args": {"env": ["LANG"]}})) == {"pure"}
}

test_fail_not_lowered[note] if {
	some note, question in {
		"unknown program": _argv(["make"]),
		"own directory": _argv(["./git", "log"]),
		"another directory": _argv(["/home/git", "log"]),
		"below the system directory": _argv(["/usr/bin/x/git", "log"]),
		"option before the word": _argv(["git", "-c", "core.pager=x", "log"]),
		"unknown word": _argv(["git", "push"]),
		"no word": _argv(["git"]),
		"unknown option": _argv(["git", "log", "--output=x"]),
		"cluster with an unknown letter": _argv(["git", "log", "-np"]),
		"lone dash": _argv(["git", "log", "-"]),
		"flag without flags": _argv(["git", "status", "-n"]),
		"operand where none belongs": _argv(["git", "status", "x"]),
		"cut argument": _argv(["git", "log", "long…"]),
		"cut list": _shell({"args": {"argv_length": 70}}),
		"environment": _shell({"args": {"env": ["GIT_PAGER"]}}),
		"background": _shell({"args": {"background": true}}),
		"not once": _shell({"effect_class": "idempotent"}),
		"other capability": _shell({"capability": "fs.read"}),
		"a credential": _shell({"credential": "present"}),
		"a missing credential": _shell({"credential": "missing"}),
		"empty argv": _argv([]),
	}
	_lowered(question) == set()
}
