package outwork.call

# METADATA
# title: A reviewed program with reviewed arguments has no effect that matters twice
# description: |
#   Never with a credential: what it is used for is not in the arguments. Every argument must be admitted by the reviewed pattern, so an option nobody thought of keeps the command `once`. The whole argv must
#   be visible, the environment plain, and the command in the foreground. It cannot see what the name resolves to in the
#   sandbox, programs configured inside a repository (textconv, fsmonitor), or that an operand is a FIFO whose content reading takes away.
# custom:
#   code: effect_lowered
#   threat: duplicate-effect
#   solution: Add a reviewed pattern to data/effects.yaml; when in doubt leave the command `once`.
obligations contains {"kind": "effect_class", "class": class} if {
	input.capability == "shell.exec"
	input.effect_class == "once"
	input.credential == "none"
	input.args.background == false
	class := _lowest_promise
}

# The weakest of the promises that patterns make for this command.
_lowest_promise := "idempotent" if {
	"idempotent" in _promises
} else := "pure" if {
	"pure" in _promises
}

_promises contains pattern.class if {
	some pattern in data.settings.effects.programs[_program]
	_seen_whole
	every name in input.args.env {
		name in data.settings.effects.plain_env
	}
	start := count(pattern.words) + 1
	array.slice(input.args.argv, 1, start) == pattern.words
	every arg in array.slice(input.args.argv, start, count(input.args.argv)) {
		_admitted(pattern, arg)
	}
}

# Found by name, or where the system keeps its programs; nowhere else.
_program := input.args.argv[0] if not contains(input.args.argv[0], "/")

_program := name if {
	some directory in ["/usr/bin/", "/bin/"]
	startswith(input.args.argv[0], directory)
	name := trim_prefix(input.args.argv[0], directory)
}

_admitted(pattern, arg) if {
	pattern.operands
	not startswith(arg, "-")
}

_admitted(pattern, arg) if arg in pattern.options

_admitted(pattern, arg) if {
	some prefix in pattern.prefixes
	startswith(arg, prefix)
}

# A cluster of reviewed single letters (or digits): `-la`, `-A3`.
_admitted(pattern, arg) if {
	letters := trim_prefix(arg, "-")
	letters != arg
	letters != ""
	trim_left(letters, pattern.flags) == ""
}
