# METADATA
# title: Paths of requests, compared by segment
# description: |
#   The only way in which a rule compares paths. What it is given are the bytes that go upstream, without query. A path that some server
#   could read in another way is not clean, and matches nothing.
package outwork.lib.paths

# METADATA
# title: A path that can be read in one way only
# description: |
#   It starts with `/` and has no dot segments (with path parameters neither), empty segments, backslashes, control characters, `?`, `#`, and
#   no escape that is malformed or stands for a slash, backslash, per cent, control or unreserved character.
clean(path) if {
	startswith(path, "/")
	not contains(path, "//")
	not regex.match(`[\x00-\x20\x7f\\?#]`, path)
	not regex.match(`(^|/)\.\.?(;[^/]*)?(/|$)`, path)
	not regex.match(`%([^0-9A-Fa-f]|$|[0-9A-Fa-f]([^0-9A-Fa-f]|$))`, path)
	not regex.match(`(?i)%([01][0-9a-f]|2[5def]|3[0-9]|[46][1-9a-f]|[57][0-9a]|5[cf]|7[ef])`, path)
}

# METADATA
# title: A path that a pattern names
# description: "`*` stands for one segment, `**` as the last one for any rest: `/public/**` names `/public/a/b`, not `/public` or `/publicity`."
matches(pattern, path) if {
	clean(path)
	wanted := split(pattern, "/")
	given := split(path, "/")
	count(wanted) == count(given)
	not "**" in wanted
	_same(wanted, given, count(wanted))
}

matches(pattern, path) if {
	clean(path)
	wanted := split(pattern, "/")
	given := split(path, "/")
	last := count(wanted) - 1
	wanted[last] == "**"
	count(given) > last
	_same(wanted, given, last)
}

# The first `length` segments agree. The first segment is what stands before the first slash: nothing.
_same(wanted, given, length) if {
	every i in numbers.range(0, length - 1) {
		_segment(wanted[i], given[i])
	}
}

_segment(wanted, given) if wanted == given

_segment("*", given) if given != ""
