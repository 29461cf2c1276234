package outwork.egress

# METADATA
# title: A request whose credential is not there
# custom:
#   code: credential_missing
#   threat: unwanted-request
#   solution: Have the user set the secret that the recipe names.
deny contains {
	"code": rego.metadata.rule().custom.code,
	"message": concat("", ["The credential that ", input.host, " wants is not there."]),
} if {
	input.credential == "missing"
}

# METADATA
# title: A credentialed request whose operation nobody has seen
# description: |
#   A merge and a list of pull requests are the same POST to the same path; what tells them apart is the body. Where it could not be read, or
#   is inside a tunnel, the credential would serve for anything.
# custom:
#   code: operation_not_seen
#   threat: credential-misuse
#   solution: Use a client whose requests the kernel can read, or ask without the credential.
deny contains {
	"code": rego.metadata.rule().custom.code,
	"message": "What this request would do with the credential cannot be seen.",
} if {
	input.credential == "present"
	_unseen
}

_unseen if not input.operations_parsed

_unseen if input.method == "CONNECT"
