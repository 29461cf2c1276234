package outwork.lib.paths_test

import data.outwork.lib.paths

test_success_clean[path] if {
	some path in ["/", "/a", "/a/", "/a.b/.c/..d", "/repos/o/r", "/a%20b", "/caf%C3%A9", "/a;v=1/b", "/%3A", "/a%3bx", "/a..%3bx", "/%E0%A4%85", "/%F0%9F%99%82", `/!"$&'()*+,:<=>@[]^{|}~`, "/...", "/a/.b;c"]
	paths.clean(path)
}

# BL-075: what a server could read in another way.
test_fail_clean[path] if {
	some path in [
		"", "a", "/public/../secret", "/public/..;x/secret", "/public/%2e%2e/secret", "/x/%252e%252e/y", "/x%2f..%2fy", "/api/%70rojects",
		"//api//x", `/a\..\b`, "/.", "/..", "/a/.", "/./a", "/.;/a", "/a%5cb", "/a%5Fb", "/a%", "/a%2", "/a%zz", "/a%00", "/a b", "/a?b",
		"/a#b", "/a%7Eb", "/a%41", "/a\n", "/%2F", "/%30", "/%5A", "/%7f", "/%2dx",
		"/é", "/a`b", "/a%zz%20", "/a/..;", "/;/../a",
		"/a/..%3bx", "/a/..%3B/b", "/a%C0%AFb", "/a%c1%9cb", "/a%E0%80%AF", "/a%f0%80%80%af", "/a%FF", "/a%f5%80%80%80",
	]
	not paths.clean(path)
}

test_success_matches[note] if {
	some note, pair in {
		"the path": ["/a/b", "/a/b"],
		"one segment": ["/repos/*/issues", "/repos/r/issues"],
		"the rest": ["/public/**", "/public/a/b"],
		"an empty rest": ["/public/**", "/public/"],
		"everything": ["/**", "/x"],
		"both": ["/repos/*/**", "/repos/r/issues/1"],
	}
	paths.matches(pair[0], pair[1])
}

test_fail_matches[note] if {
	some note, pair in {
		"another": ["/a/b", "/a/c"],
		"longer": ["/a", "/a/b"],
		"shorter": ["/a/b", "/a"],
		"no boundary": ["/public/**", "/publicity"],
		"the folder itself": ["/public/**", "/public"],
		"an empty segment": ["/repos/*/issues", "/repos//issues"],
		"two segments": ["/repos/*", "/repos/a/b"],
		"no segment": ["/repos/*", "/repos/"],
		"capitals": ["/a", "/A"],
		"dot segments": ["/public/**", "/public/../secret"],
		"escaped dot segments": ["/public/**", "/public/%2e%2e/secret"],
		"with parameters": ["/public/**", "/public/..;x/secret"],
		"a rest in the middle": ["/a/**/b", "/a/x/b"],
	}
	not paths.matches(pair[0], pair[1])
}
