# METADATA
# title: Addresses and the networks they are in
# description: |
#   The only way in which a rule compares addresses. The kernel refuses non-public addresses below these rules; this is for rules of one's own.
package outwork.lib.cidrs

# METADATA
# title: An address in its plain form
# description: "A dotted quad without leading zeros, or hexadecimal IPv6 in lower case without zone, brackets or a dotted tail."
address(text) if regex.match(`^(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(\.(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])){3}$`, text)

address(text) if _six(text)

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

_six(text) if {
	regex.match(`^[0-9a-f:]+$`, text)
	regex.match(`^([0-9a-f]{1,4}(:[0-9a-f]{1,4})*)?(::([0-9a-f]{1,4}(:[0-9a-f]{1,4})*)?)?$`, text)
	groups := [group | some group in split(text, ":"); group != ""]
	_length(text, count(groups))
}

_length(text, groups) if {
	contains(text, "::")
	groups < 8
}

_length(text, groups) if {
	not contains(text, "::")
	groups == 8
}

_family(text) := 6 if contains(text, ":")

_family(text) := 4 if not contains(text, ":")

_special_4 := [
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
]

_special_6 := ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"]
