package outwork.lib.hosts_test

import data.outwork.lib.hosts

# BL-070: one form for all ways of writing a name.
test_success_canonical[text] if {
	some text, name in {
		"example.com": "example.com",
		"EXAMPLE.com": "example.com",
		"example.com.": "example.com",
		"a-b.example.com": "a-b.example.com",
		"_dmarc.example.com": "_dmarc.example.com",
		"1.example.com": "1.example.com",
		"169.254.169.254": "169.254.169.254",
		"169.254.169.254.": "169.254.169.254",
	}
	hosts.canonical(text) == name
}

# BL-070 and BL-077: what is no name has no form.
test_fail_no_canonical_form[text] if {
	some text in [
		"", ".", "..", "example.com..", ".example.com", "a..b", "example.com:443", "[::1]", "exam ple.com", "-a.com", "a-.com", "a/b",
		"169.254.169.254..", "2130706433", "0x7f.1", "0x7f000001", "017700000001", "0177.0.0.1", "127.1", "256.1.1.1", "1.2.3.4.5",
		"01.2.3.4", "exämple.com", "a@b.com", "Kelvin.com", "a.-b.com", "-", "1.2.3.256", "0x", "a.0xff",
	]
	not hosts.canonical(text)
}

test_fail_too_long if not hosts.canonical(concat(".", [label | some _ in numbers.range(1, 60); label := "abcdef"]))

test_success_pattern[text] if {
	some text in ["example.com", "localhost", "*.example.com", "*.example.co.uk", "*.acme.github.io", "github.io", "10.0.0.1"]
	hosts.pattern(text)
}

# BL-073: patterns that name what anybody can register.
test_fail_pattern[text] if {
	some text in ["*", "*.com", "*.co.uk", "*.github.io", "*.s3.amazonaws.com", "*.", "*example.com", "a.*.com", "*.*.com", "EXAMPLE.com", "example.com.", "*.Example.com", ""]
	not hosts.pattern(text)
}

test_success_matches[note] if {
	some note, pair in {
		"the name": ["example.com", "example.com"],
		"in capitals": ["example.com", "EXAMPLE.com"],
		"with a trailing dot": ["example.com", "example.com."],
		"one more label": ["*.example.com", "api.example.com"],
		"two more labels": ["*.example.com", "v1.api.example.com."],
	}
	hosts.matches(pair[0], pair[1])
}

# BL-073: only at a label's boundary.
test_fail_matches[note] if {
	some note, pair in {
		"another name": ["example.com", "example.org"],
		"a longer name": ["example.com", "evil-example.com"],
		"a name below": ["example.com", "api.example.com"],
		"the apex": ["*.example.com", "example.com"],
		"no boundary": ["*.example.com", "evil-example.com"],
		"no boundary either": ["*.example.com", "notexample.com"],
		"at the front": ["*.example.com", "example.com.evil.test"],
		"a URL": ["*.example.com", "https://evil.tld/?a=.example.com/x"],
		"a fragment": ["*.example.com", "https://169.254.169.254/#.example.com"],
		"an empty label": ["*.example.com", "..example.com"],
		"a pattern that is none": ["*.com", "example.com"],
		"everything": ["*", "example.com"],
		"a trailing dot twice": ["example.com", "example.com.."],
	}
	not hosts.matches(pair[0], pair[1])
}

_entries := {"example.com": "exact", "*.example.com": "below", "*.api.example.com": "far below", "*.com": "everything"}

test_success_listed[host] if {
	some host, value in {
		"example.com": "exact",
		"EXAMPLE.com.": "exact",
		"www.example.com": "below",
		"api.example.com": "below",
		"v1.api.example.com": "far below",
	}
	hosts.listed(_entries, host) == value
}

test_fail_listed[host] if {
	some host in ["example.org", "evil-example.com", "example.com.evil.test", "com", "", "example.com..", "other.com"]
	not hosts.listed(_entries, host)
}

test_success_patterns[host] if {
	some host, texts in {
		"example.com": ["example.com"],
		"EXAMPLE.com.": ["example.com"],
		"v1.api.example.com": ["v1.api.example.com", "*.api.example.com", "*.example.com"],
		"a.acme.github.io": ["a.acme.github.io", "*.acme.github.io"],
		"a.acme.co.uk": ["a.acme.co.uk", "*.acme.co.uk"],
		"localhost": ["localhost"],
	}
	hosts.patterns(host) == texts
}

test_fail_patterns[host] if {
	some host in ["", "example.com..", "example.com:443", "0x7f.1"]
	not hosts.patterns(host)
}
