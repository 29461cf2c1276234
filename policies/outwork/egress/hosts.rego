package outwork.egress

import data.outwork.lib.cidrs

# METADATA
# title: A host that can be read in more than one way
# description: |
#   The kernel asks with the one form that it will resolve and dial: lower case, no trailing dot, port or brackets. Text that some resolver reads
#   as a number, and a name of one label, which the resolver's search list completes, are refused too.
# custom:
#   code: host_unclear
#   threat: server-side-request-forgery
#   solution: Ask for the full name of the host.
deny contains {
	"code": rego.metadata.rule().custom.code,
	"message": "This is not the full name of a host, nor an address in its plain form.",
} if {
	not _name
	not _address
}

# METADATA
# title: An address that is not of the public internet
# description: |
#   Loopback, link-local (where metadata services live), private, shared, multicast and reserved ranges, and IPv6 addresses that carry an IPv4 one.
#   No entry of the list changes that. Names are resolved by the kernel after this decision, and held to the same ranges there.
# custom:
#   code: address_not_public
#   threat: server-side-request-forgery
#   solution: There is none here; what lies in a private network is reached by a name that the operator makes known to the kernel.
deny contains {
	"code": rego.metadata.rule().custom.code,
	"message": concat("", [_address, " is not an address of the public internet."]),
} if {
	not cidrs.public(_address)
}

# METADATA
# title: An address that no listed network holds
# description: An address says nothing about whose it is, so names are the rule and networks the exception.
# custom:
#   code: address_not_listed
#   threat: data-exfiltration
#   solution: Ask for the host by its name, or name its network below `addresses` in data/egress.yaml.
deny contains {
	"code": rego.metadata.rule().custom.code,
	"message": concat("", [_address, " is in no listed network; ask for the host by its name."]),
} if {
	cidrs.public(_address)
	count(_entries) == 0
}

# METADATA
# title: A host that is denied by name
# custom:
#   code: host_denied
#   threat: data-exfiltration
#   solution: Take the pattern out of `denied` in data/egress.yaml.
deny contains {
	"code": rego.metadata.rule().custom.code,
	"message": concat("", [_name, " is denied: ", why]),
} if {
	some pattern in _patterns
	why := data.settings.egress.denied[pattern]
}

# METADATA
# title: A host that is not listed for this user
# custom:
#   code: host_not_listed
#   threat: data-exfiltration
#   solution: Name the host below `hosts` in data/egress.yaml.
deny contains {
	"code": rego.metadata.rule().custom.code,
	"message": concat("", [_name, " is not a host that this user may reach."]),
} if {
	count(_entries) == 0
}

# METADATA
# title: A port that is not listed for the host
# custom:
#   code: port_not_listed
#   threat: data-exfiltration
#   solution: Name the port in an entry of the host in data/egress.yaml.
deny contains {
	"code": rego.metadata.rule().custom.code,
	"message": concat("", [input.host, " may not be reached on this port."]),
} if {
	count(_entries) > 0
	not _port_listed
}

_port_listed if {
	some entry in _entries
	input.port in entry.ports
}
