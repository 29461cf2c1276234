package outwork.call

# METADATA
# title: A denied program is named by the command
# description: |
#   Matches the base name of argv[0], and behind a launcher (env, sh -c, xargs, …) every word of every argument: `sh -c "echo
#   curl"` is denied too, on purpose. It cannot see a script in a file, a name put together at run time (`c''url`, variables,
#   base64), an interpreter's own code, a copy or link under another name, or what a program starts by itself. In the sandboxed
#   placements argv is reported by the executor: a permit grants effects, not argv. The network is held by the wall, not by this rule.
# custom:
#   code: program_denied
#   threat: unwanted-program
#   solution: Use another program, or take the name out of `denied_programs` in data/call.yaml.
deny contains {
	"code": rego.metadata.rule().custom.code,
	"message": concat("", [program, " is a denied program."]),
} if {
	some program in _denied_and_named
}

# METADATA
# title: A launcher's arguments are too long to be seen whole
# description: |
#   The kernel shows policy the first arguments and the first characters of each. Behind a launcher the denied name could be in the
#   part that was cut. Only matters while a program is denied at all.
# custom:
#   code: arguments_not_seen
#   threat: unwanted-program
#   solution: Use fewer and shorter arguments; or deny no program.
deny contains {
	"code": rego.metadata.rule().custom.code,
	"message": concat("", [_base(input.args.argv[0]), " starts programs, and its arguments are too long to be checked."]),
} if {
	input.capability == "shell.exec"
	count(data.settings.call.denied_programs) > 0
	_launched
	not _seen_whole
}

_denied_and_named contains program if {
	input.capability == "shell.exec"
	some program in data.settings.call.denied_programs
	program == _base(input.args.argv[0])
}

_denied_and_named contains program if {
	input.capability == "shell.exec"
	some program in data.settings.call.denied_programs
	_launched
	some arg in input.args.argv

	# Cheap look first; the word must then be the whole base name.
	contains(arg, program)
	some match in regex.find_all_string_submatch_n(`[^\s;|&()<>{}"'=,\\$\x60]+`, arg, -1)
	program == _base(match[0])
}

_launched if _base(input.args.argv[0]) in data.settings.call.launchers

# A cut argument ends with an ellipsis; a cut list is shorter than its stated length.
_seen_whole if {
	count(input.args.argv) == input.args.argv_length
	every arg in input.args.argv {
		not endswith(arg, "…")
	}
}

_base(path) := name if {
	parts := split(path, "/")
	name := parts[count(parts) - 1]
}
