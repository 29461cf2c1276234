package outwork.egress_test

import data.outwork.egress

_web := {"ports": [443], "schemes": ["https"], "methods": ["GET", "HEAD"], "paths": ["/public/**", "/repos/*/issues"]}

_any := {"ports": [443, 8443], "schemes": ["https"], "methods": ["CONNECT", "GET"], "paths": ["/**"]}

_settings := {
	"hosts": {
		"example.com": [_web],
		"*.example.com": [_any],
		"*.com": [_any],
		"com": [_any],
		"93.184.216.34": [_any],
		"ada.example.org": [object.union(_any, {"users": ["ada"]}), object.union(_any, {"tenants": ["other"]})],
		"nobody.example.org": [object.union(_any, {"users": []}), object.union(_any, {"tenants": []})],
		"api.example.net": [object.union(_web, {"recipe": "forge", "methods": ["POST"]}), _web],
	},
	"addresses": {"198.41.0.0/24": [_any], "2606:2800::/32": [_any], "10.0.0.0/8": [_any], "nonsense": [_any]},
	"denied": {"admin.example.com": "not for agents", "*.secret.example.com": "not for anybody"},
}

_request(changes) := object.union(
	{
		"scope": {"tenant": "acme", "user": "ada"},
		"scheme": "https",
		"method": "GET",
		"host": "example.com",
		"port": 443,
		"path": "/public/a",
		"query": [],
		"headers": [],
		"operations": [],
		"operations_parsed": true,
		"recipe": "",
		"credential": "none",
	},
	changes,
)

_denied(changes) := {reason.code | some reason in reasons} if {
	reasons := egress.deny with input as _request(changes) with data.settings.egress as _settings
}

_allowed(changes) := {reason.code | some reason in reasons} if {
	reasons := egress.allow with input as _request(changes) with data.settings.egress as _settings
}

test_success_listed[note] if {
	some note, changes in {
		"by name": {},
		"one segment": {"path": "/repos/r/issues"},
		"a name below": {"host": "www.example.com", "path": "/x"},
		"two labels below": {"host": "a.b.example.com", "path": "/x", "port": 8443},
		"a tunnel": {"host": "www.example.com", "method": "CONNECT", "path": ""},
		"an address in a network": {"host": "198.41.0.4", "path": "/x"},
		"a long address": {"host": "2606:2800:220:1::1", "path": "/x"},
		"for this user": {"host": "ada.example.org", "path": "/x"},
		"for another user of that tenant": {"host": "ada.example.org", "path": "/x", "scope": {"tenant": "other", "user": "bob"}},
		"with its recipe": {"host": "api.example.net", "method": "POST", "recipe": "forge", "credential": "present"},
		"with its recipe and no credential": {"host": "api.example.net", "method": "POST", "recipe": "forge"},
		"without credential on a recipe's host": {"host": "api.example.net", "recipe": "forge"},
	}
	_allowed(changes) == {"request_listed"}
	_denied(changes) == set()
}

test_fail_denied[note] if {
	some note, row in {
		"another port": {"changes": {"port": 22}, "codes": {"port_not_listed"}},
		"port 0": {"changes": {"port": 0}, "codes": {"port_not_listed"}},
		"a port that is text": {"changes": {"port": "443"}, "codes": {"port_not_listed"}},
		"another scheme": {"changes": {"scheme": "http"}, "codes": {"request_not_listed"}},
		"another method": {"changes": {"method": "POST"}, "codes": {"request_not_listed"}},
		"a method in lower case": {"changes": {"method": "get"}, "codes": {"request_not_listed"}},
		"another path": {"changes": {"path": "/private"}, "codes": {"request_not_listed"}},
		"a tunnel without CONNECT": {"changes": {"method": "CONNECT", "path": ""}, "codes": {"request_not_listed"}},
		"a tunnel with a path": {"changes": {"host": "www.example.com", "method": "CONNECT", "path": "/"}, "codes": {"request_not_listed"}},
		"no path": {"changes": {"path": ""}, "codes": {"path_unclear", "request_not_listed"}},
		"dot segments": {"changes": {"path": "/public/../secret"}, "codes": {"path_unclear", "request_not_listed"}},
		"another host": {"changes": {"host": "example.org"}, "codes": {"host_not_listed"}},
		"no boundary": {"changes": {"host": "evil-example.com"}, "codes": {"host_not_listed"}},
		"what anybody can register": {"changes": {"host": "other.com"}, "codes": {"host_not_listed"}},
		"another user": {"changes": {"host": "ada.example.org", "scope": {"user": "bob"}}, "codes": {"host_not_listed"}},
		"for nobody": {"changes": {"host": "nobody.example.org"}, "codes": {"host_not_listed"}},
		"denied by name": {"changes": {"host": "admin.example.com"}, "codes": {"host_denied"}},
		"denied by pattern": {"changes": {"host": "a.b.secret.example.com"}, "codes": {"host_denied"}},
		"an address outside": {"changes": {"host": "198.41.1.4"}, "codes": {"address_not_listed"}},
		"an address as a name": {"changes": {"host": "93.184.216.34"}, "codes": {"address_not_listed"}},
		"a private address that is listed": {"changes": {"host": "10.1.2.3", "path": "/x"}, "codes": {"address_not_public"}},
		"a metadata service": {"changes": {"host": "169.254.169.254"}, "codes": {"address_not_public"}},
		"loopback": {"changes": {"host": "::1"}, "codes": {"address_not_public"}},
		"capitals": {"changes": {"host": "EXAMPLE.com"}, "codes": {"host_unclear"}},
		"a trailing dot": {"changes": {"host": "example.com."}, "codes": {"host_unclear"}},
		"a port in the name": {"changes": {"host": "example.com:443"}, "codes": {"host_unclear"}},
		"one label": {"changes": {"host": "com"}, "codes": {"host_unclear"}},
		"a number": {"changes": {"host": "2130706433"}, "codes": {"host_unclear"}},
		"no text": {"changes": {"host": 1}, "codes": {"host_unclear"}},
		"without the recipe": {"changes": {"host": "api.example.net", "method": "POST"}, "codes": {"request_not_listed"}},
		"a credential without the recipe": {"changes": {"credential": "present"}, "codes": {"request_not_listed"}},
		"a credential under another recipe": {
			"changes": {"host": "api.example.net", "method": "POST", "credential": "present", "recipe": "other"},
			"codes": {"request_not_listed"},
		},
		"an unknown credential": {
			"changes": {"host": "api.example.net", "method": "POST", "credential": "perhaps", "recipe": "forge"},
			"codes": {"request_not_listed"},
		},
		"a missing credential": {"changes": {"credential": "missing"}, "codes": {"credential_missing"}},
		"operations not parsed": {
			"changes": {"host": "api.example.net", "method": "POST", "credential": "present", "recipe": "forge", "operations_parsed": false},
			"codes": {"operation_not_seen"},
		},
		"a credential in a tunnel": {
			"changes": {"method": "CONNECT", "path": "", "credential": "present"},
			"codes": {"operation_not_seen", "request_not_listed"},
		},
	}
	_denied(row.changes) == row.codes
}

test_success_operations_not_parsed_without_a_credential if _denied({"operations_parsed": false}) == set()

_headers(names) := {"headers": [{"name": name, "value": "x"} | some name in names]}

test_fail_header_repeated[names] if {
	some names in [
		["Host", "host"],
		["authorization", "Accept", "Authorization"],
		["Content-Length", "Content-Length"],
		["cookie", "cookie"],
		["transfer-encoding", "Transfer-Encoding"],
		["proxy-authorization", "proxy-authorization"],
	]
	_denied(_headers(names)) == {"header_repeated"}
}

test_success_header_not_repeated[names] if {
	some names in [[], ["host", "accept"], ["X-Org", "x-org"], ["x_org", "x-org"], ["host", "x-host"]]
	_denied(_headers(names)) == set()
}
