# METADATA
# title: Paths of requests, compared by segment
# description: |
#   The only way in which a rule compares paths. What it is given are the bytes that go upstream, without query. A path that some server
#   could read in another way is not clean, and matches nothing.
package outwork.lib.paths

# METADATA
# title: A path that can be read in one way only
# description: |
#   It starts with `/` and has no dot segments (with path parameters neither), empty segments, characters other than visible ASCII, backslashes,
#   backticks, `?`, `#`, and no escape that is malformed, begins no character of UTF-8 (`%C0%AF` is a slash to some), or stands for a slash,
#   backslash, per cent, control or unreserved character.
clean(path) if {
	startswith(path, "/")
	trim_left(path, `abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/-._~%!"$&'()*+,:;<=>@[]^{|}`) == ""
	not contains(path, "//")
	not _dot_segment(path)
	not _unclear_escape(path)
}

# A cheap look first: an expression costs as much as all else together, and most paths have neither.
_dot_segment(path) if {
	contains(path, "/.")
	regex.match(`/\.\.?((;|%3[Bb])[^/]*)?(/|$)`, path)
}

_unclear_escape(path) if {
	contains(path, "%")
	regex.match(`%([^0-9A-Fa-f]|$|[0-9A-Fa-f]([^0-9A-Fa-f]|$))`, path)
}

_unclear_escape(path) if {
	contains(path, "%")
	regex.match(`(?i)%([01][0-9a-f]|2[5def]|3[0-9]|[46][1-9a-f]|[57][0-9a]|5[cf]|7[ef])`, path)
}

_unclear_escape(path) if {
	contains(path, "%")
	regex.match(`(?i)%(c[01]|f[5-9a-f]|e0%[89]|f0%8)`, path)
}

# METADATA
# title: A path that a pattern names
# description: "`*` stands for one segment, `**` as the last one for any rest: `/public/**` names `/public/a/b`, not `/public` or `/publicity`."
matches(pattern, path) if {
	wanted := split(pattern, "/")
	given := split(path, "/")
	count(wanted) == count(given)
	not "**" in wanted
	_same(wanted, given, count(wanted))
	clean(path)
}

matches(pattern, path) if {
	wanted := split(pattern, "/")
	given := split(path, "/")
	last := count(wanted) - 1
	wanted[last] == "**"
	count(given) > last
	_same(wanted, given, last)
	clean(path)
}

# The first `length` segments agree. The first segment is what stands before the first slash: nothing.
_same(wanted, given, length) if {
	every i in numbers.range(0, length - 1) {
		_segment(wanted[i], given[i])
	}
}

_segment(wanted, given) if wanted == given

_segment("*", given) if given != ""
