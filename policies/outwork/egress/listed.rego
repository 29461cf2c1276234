# METADATA
# title: Questions about a request that leaves for the network
# description: |
#   Asked before a name is resolved. Data names who is reached (data/egress.yaml); what it does not name is denied, and nothing here waits for
#   a person: a program that holds a connection open cannot be parked.
# scope: package
# schemas:
#   - input: schema.input.egress
#   - data.settings.egress: schema.settings.egress
package outwork.egress

import data.outwork.lib.cidrs
import data.outwork.lib.hosts
import data.outwork.lib.paths

# METADATA
# title: A request that an entry of the list admits
# description: |
#   Entries only ever add: a request is allowed when one entry of any pattern that names its host admits all of it. A credentialed request needs an
#   entry that names its recipe.
# custom:
#   code: request_listed
#   threat: data-exfiltration
#   solution: Name host, port, scheme, method and path below `hosts` in data/egress.yaml.
allow contains {
	"code": rego.metadata.rule().custom.code,
	"message": concat("", [input.method, " to ", input.host, " is listed."]),
} if {
	some entry in _entries
	input.port in entry.ports
	input.scheme in entry.schemes
	input.method in entry.methods
	_path_fits(entry)
	_credential_fits(entry)
}

# What data says of this host to this user. Looked up by name: a long list costs what a short one does.
_entries contains entry if {
	_name
	some pattern in _patterns
	some entry in data.settings.egress.hosts[pattern]
	_meant(entry)
}

_entries contains entry if {
	some network, entries in data.settings.egress.addresses
	cidrs.within(network, _address)
	some entry in entries
	_meant(entry)
}

# A name that can be read in one way only, with at least two labels. An address is no name: no pattern admits it.
_name := input.host if {
	not _address
	_patterns[0] == input.host
	contains(input.host, ".")
}

# The first is the host in its one form.
_patterns := hosts.patterns(input.host) if input.host != ""

_address := input.host if cidrs.address(input.host)

_meant(entry) if {
	input.scope.user in object.get(entry, "users", [input.scope.user])
	input.scope.tenant in object.get(entry, "tenants", [input.scope.tenant])
}

_path_fits(entry) if {
	input.method != "CONNECT"
	some pattern in entry.paths
	paths.matches(pattern, input.path)
}

# Paths of a tunnel are not seen: only an entry for all of them lets one through.
_path_fits(entry) if {
	input.method == "CONNECT"
	input.path == ""
	"/**" in entry.paths
}

_credential_fits(entry) if {
	input.credential in {"none", "present"}
	entry.recipe == input.recipe
}

_credential_fits(entry) if {
	input.credential == "none"
	not entry.recipe
}
