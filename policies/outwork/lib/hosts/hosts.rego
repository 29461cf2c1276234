# METADATA
# title: Host names, compared by label
# description: |
#   The only way in which a rule compares hosts. A name that is not well formed has no canonical form and matches nothing, so doubt never
#   allows. Use `listed` for lists that may be long: it looks a name up, however many entries there are.
package outwork.lib.hosts

import data.outwork.lib.cidrs

# METADATA
# title: The one form of a host name
# description: |
#   Lower case, without one trailing dot. Undefined for empty labels, ports, brackets, and for everything that some resolver reads as a
#   number (`2130706433`, `0x7f.1`, `0177.0.0.1`) unless it is a plain dotted quad.
canonical(text) := name if {
	name := _labelled(text)
	_read_in_one_way(name)
}

_read_in_one_way(name) if not _reads_as_number(name)

_read_in_one_way(name) if cidrs.quad(name)

# Of letters, digits, `_`, `-` and single dots, no label with `-` at an end. Looked at before `lower`, which knows letters that fold into these.
_labelled(text) := name if {
	trim_left(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") == ""
	name := trim_suffix(lower(text), ".")
	count(name) <= 253
	between_dots := concat("", [".", name, "."])
	not contains(between_dots, "..")
	not contains(between_dots, ".-")
	not contains(between_dots, "-.")
}

# METADATA
# title: A pattern that may stand in a list of hosts
# description: |
#   A name in its canonical form, or `*.` before one of at least two labels. `*`, `*.com`, `*.co.uk` and `*.github.io` are none: they name
#   what anybody can register.
pattern(text) if canonical(text) == text

pattern(text) if {
	_wildcard(text)
	rest := trim_prefix(text, "*.")
	canonical(rest) == rest
	labels := split(rest, ".")
	count(labels) > 1
	not _registry(labels)
}

# METADATA
# title: A host that a pattern names
# description: "`*.example.com` names every host with at least one more label; not example.com itself."
matches(text, host) if {
	pattern(text)
	not _wildcard(text)
	canonical(host) == text
}

matches(text, host) if {
	pattern(text)
	_wildcard(text)
	endswith(canonical(host), trim_prefix(text, "*"))
}

# METADATA
# title: The patterns that could name a host
# description: |
#   The name itself, then `*.` before each of its parents that a pattern may name, the longest first. Look them up in an object whose keys are
#   patterns: its size does not matter. None for what has no canonical form.
patterns(host) := array.concat([name], wildcards) if {
	name := canonical(host)
	labels := split(name, ".")
	last := count(labels) - 1
	wildcards := [concat("", ["*.", concat(".", rest)]) |
		some from, _ in labels
		from > 0
		from < last
		rest := array.slice(labels, from, last + 1)
		not _registry(rest)
	]
}

# METADATA
# title: A host that is in a list
# description: "The list is an object whose keys are patterns. Returns the value of the longest that names the host."
listed(entries, host) := value if {
	found := [entry |
		some text in patterns(host)
		entry := entries[text]
	]
	value := found[0]
}

_wildcard(text) if startswith(text, "*.")

# Its last label is digits, or hexadecimal digits after 0x.
_reads_as_number(name) if trim_left(_last_label(name), "0123456789") == ""

_reads_as_number(name) if {
	digits := trim_prefix(_last_label(name), "0x")
	digits != _last_label(name)
	trim_left(digits, "0123456789abcdef") == ""
}

_last_label(name) := label if {
	labels := split(name, ".")
	label := labels[count(labels) - 1]
}

# Second levels under which country registries sell names.
_registry(labels) if {
	count(labels) == 2
	count(labels[1]) == 2
	labels[0] in {"ac", "co", "com", "edu", "go", "gob", "gov", "gv", "ltd", "mil", "ne", "net", "nom", "or", "org", "plc", "sch"}
}

# Names of hosters below which anybody gets a name of their own.
_registry(labels) if concat(".", labels) in _hosters

_hosters := [
	"appspot.com", "azurewebsites.net", "blob.core.windows.net", "blogspot.com", "cloudapp.net", "cloudfront.net", "deno.dev", "duckdns.org",
	"dyndns.org", "elasticbeanstalk.com", "firebaseapp.com", "fly.dev", "github.io", "gitlab.io", "herokuapp.com",
	"netlify.app", "ngrok-free.app", "ngrok.app", "ngrok.io", "onrender.com", "pages.dev", "r2.dev", "repl.co", "replit.dev", "run.app",
	"s3.amazonaws.com", "surge.sh", "translate.goog", "trycloudflare.com", "up.railway.app", "vercel.app", "web.app", "workers.dev",
]
