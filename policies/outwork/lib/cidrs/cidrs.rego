# METADATA
# title: Addresses and the networks they are in
# description: |
#   The only way in which a rule compares addresses. The kernel refuses non-public addresses below these rules; this is for rules of one's own.
package outwork.lib.cidrs

# METADATA
# title: An address in its plain form
# description: "A dotted quad without leading zeros, or hexadecimal IPv6 in lower case without zone, brackets or a dotted tail."
address(text) if quad(text)

address(text) if _six(text)

# METADATA
# title: An IPv4 address in its plain form
# description: Four numbers up to 255, no zero before another digit.
quad(text) if {
	octets := split(text, ".")
	count(octets) == 4
	every octet in octets {
		trim_left(octet, "0123456789") == ""
		count(octet) in {1, 2, 3}
		_no_leading_zero(octet)
		to_number(octet) < 256
	}
}

# METADATA
# title: An address that is in a network
within(network, text) if {
	address(text)
	_family(network) == _family(text)
	net.cidr_contains(network, text)
}

# METADATA
# title: An address of the public internet
# description: |
#   Not private, shared, loopback, link-local (where metadata services live), multicast, reserved or for documentation; and no IPv6 address
#   that carries an IPv4 one (mapped, NAT64, 6to4, Teredo).
public(text) if {
	address(text)
	_family(text) == 4
	every network in _special_4 {
		not within(network, text)
	}
}

public(text) if {
	within("2000::/3", text)
	every network in _special_6 {
		not within(network, text)
	}
}

# Eight groups of up to four digits, or fewer with one `::`, which may have nothing before or after it.
_six(text) if {
	contains(text, ":")
	halves := split(text, "::")
	groups := [group | some half in halves; some group in split(half, ":"); half != ""]
	_complete(count(halves), count(groups))
	every group in groups {
		trim_left(group, "0123456789abcdef") == ""
		count(group) in {1, 2, 3, 4}
	}
}

_no_leading_zero("0")

_no_leading_zero(octet) if not startswith(octet, "0")

_complete(1, 8)

_complete(2, groups) if groups < 8

_family(text) := 6 if contains(text, ":")

_family(text) := 4 if not contains(text, ":")

_special_4 := [
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
]

_special_6 := ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"]
