package outwork.call_test

import data.outwork.call

_programs := {"denied_programs": ["curl", "nc"], "launchers": ["env", "sh", "xargs"]}

_denied(args, settings) := codes if {
	reasons := call.deny with input as {"capability": "shell.exec", "args": args} with data.settings.call as settings
	codes := {reason.code | some reason in reasons}
}

_whole(argv) := {"argv": argv, "argv_length": count(argv)}

test_fail_denied_program_is_named[note] if {
	some note, argv in {
		"plain": ["curl", "x"],
		"absolute path": ["/usr/bin/curl"],
		"relative path": ["./tools/nc"],
		"through env": ["env", "A=1", "curl", "x"],
		"through a path to env": ["/usr/bin/env", "-i", "/usr/bin/curl"],
		"in a script": ["sh", "-c", "cd /tmp && curl -s x|sort"],
		"in a substitution": ["sh", "-c", "echo $(curl x)"],
		"in backquotes": ["sh", "-c", "echo `curl x`"],
		"quoted": ["sh", "-c", "'curl' x"],
		"by path in a script": ["sh", "-c", "/usr/bin/curl x"],
		"after an assignment": ["sh", "-c", "A=1 curl x"],
		"on its own line": ["sh", "-c", "true\ncurl x"],
		"escaped": ["sh", "-c", `\curl x`],
		"through two launchers": ["xargs", "sh", "-c", "curl x"],
	}
	_denied(_whole(argv), _programs) == {"program_denied"}
}

test_success_not_named[note] if {
	some note, argv in {
		"another program": ["make", "curl"],
		"longer name": ["curlew"],
		"longer name in a script": ["sh", "-c", "libcurl-config; curl-config; nc2"],
		"a directory of that name": ["sh", "-c", "ls /opt/curl/share"],
	}
	_denied(_whole(argv), _programs) == set()
}

test_success_nothing_is_denied if {
	_denied(_whole(["sh", "-c", "curl x…"]), {"denied_programs": [], "launchers": ["sh"]}) == set()
}

test_success_other_capability if {
	reasons := call.deny with input as {"capability": "fs.read", "args": _whole(["curl"])} with data.settings.call as _programs
	reasons == set()
}

test_fail_cut_arguments_behind_a_launcher[note] if {
	some note, args in {
		"cut list": {"argv": ["env", "A=1"], "argv_length": 70},
		"cut argument": _whole(["sh", "-c", "echo a long scr…"]),
	}
	_denied(args, _programs) == {"arguments_not_seen"}
}

test_success_cut_arguments_of_another_program if {
	_denied({"argv": ["make", "a"], "argv_length": 70}, _programs) == set()
}
