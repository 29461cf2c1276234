package outwork.site

# METADATA
# title: A rule of the site asks where nothing can wait
# description: |
#   A call and a trigger can wait for a person. A request to the network, a placement and an answer cannot, so there an ask is a deny: what the
#   site wanted looked at does not happen unseen.
# custom:
#   code: ask_is_deny
#   threat: floor-widened
#   solution: Have the site's rule deny, or ask before the call that leads here.
deny contains {
	"code": rego.metadata.rule().custom.code,
	"message": concat("", [reason.message, " (", reason.code, "; nothing of this kind waits for an approval, so it is refused.)"]),
} if {
	some reason in _asked_in_vain
}

_asked_in_vain contains reason if {
	input.kind == "egress"
	some reason in data.site.egress.ask
}

_asked_in_vain contains reason if {
	input.kind == "placement"
	some reason in data.site.placement.ask
}

_asked_in_vain contains reason if {
	input.kind == "approval"
	some reason in data.site.approval.ask
}
