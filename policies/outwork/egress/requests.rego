package outwork.egress

import data.outwork.lib.paths

# METADATA
# title: A request that no entry of its host admits
# custom:
#   code: request_not_listed
#   threat: unwanted-request
#   solution: Name scheme, method and path together in one entry of the host in data/egress.yaml, and the recipe when the request carries a credential.
deny contains {
	"code": rego.metadata.rule().custom.code,
	"message": concat("", [input.host, " may be reached, but not with this scheme, method, path and credential."]),
} if {
	_port_listed
	input.credential != "missing"
	count(allow) == 0
}

# METADATA
# title: A path that a server could read in another way
# description: Dot segments, empty segments, escaped slashes, double escapes; `outwork.lib.paths` says which. It is sent upstream as it is, so no list can name it.
# custom:
#   code: path_unclear
#   threat: path-confusion
#   solution: Ask for the plain path.
deny contains {
	"code": rego.metadata.rule().custom.code,
	"message": "A server could read this path in more than one way.",
} if {
	input.method != "CONNECT"
	not paths.clean(input.path)
}

# METADATA
# title: A header that decides, twice
# description: |
#   The kernel would look at one and the server at the other. Of other headers and of query parameters rules see every value, in a list; names that
#   differ in more than case (`x_org`, `x-org`) are different names.
# custom:
#   code: header_repeated
#   threat: request-smuggling
#   solution: Send the header once.
deny contains {
	"code": rego.metadata.rule().custom.code,
	"message": concat("", ["The header ", name, " is there more than once."]),
} if {
	names := [lower(header.name) | some header in input.headers]
	some name in {"authorization", "content-length", "cookie", "host", "proxy-authorization", "transfer-encoding"}
	count([one | some one in names; one == name]) > 1
}
