# METADATA
# title: The decision
# description: |
#   One document per question of the kernel. deny beats ask, ask beats allow, and what no rule allows is denied. A kind of
#   question is a folder below this one; it offers deny, ask, allow and obligations. `site` adds what the installation's own rules say. Only a call
#   and a trigger can wait for a person.
package outwork

import data.outwork.approval
import data.outwork.call
import data.outwork.egress
import data.outwork.placement
import data.outwork.site
import data.outwork.trigger

# METADATA
# title: What the kernel asks for
# description: "Always one document {effect, reasons, obligations}; the order of its lists means nothing."
# entrypoint: true
# scope: document
# custom:
#   code: no_rule_allows
#   threat: unforeseen-request
#   solution: Add an allow rule for this kind of request, or the missing entry to the data it reads.
default decision := {
	"effect": "deny",
	"reasons": [{"code": "no_rule_allows", "message": "No rule allows this request."}],
	"obligations": [],
}

decision := {"effect": "deny", "reasons": _deny, "obligations": []} if {
	count(_deny) > 0
} else := {"effect": "ask", "reasons": _ask, "obligations": _obligations} if {
	count(_ask) > 0
	count(_allow) > 0
} else := {"effect": "allow", "reasons": _allow, "obligations": _obligations} if {
	count(_allow) > 0
}

_deny contains reason if {
	input.kind == "call"
	some reason in call.deny
}

_deny contains reason if {
	input.kind == "placement"
	some reason in placement.deny
}

_deny contains reason if {
	input.kind == "approval"
	some reason in approval.deny
}

_deny contains reason if {
	input.kind == "egress"
	some reason in egress.deny
}

_deny contains reason if {
	input.kind == "trigger"
	some reason in trigger.deny
}

_deny contains reason if some reason in site.deny

_ask contains reason if {
	input.kind == "call"
	some reason in call.ask
}

_ask contains reason if {
	input.kind == "trigger"
	some reason in trigger.ask
}

_ask contains reason if some reason in site.ask

_allow contains reason if {
	input.kind == "call"
	some reason in call.allow
}

_allow contains reason if {
	input.kind == "placement"
	some reason in placement.allow
}

_allow contains reason if {
	input.kind == "approval"
	some reason in approval.allow
}

_allow contains reason if {
	input.kind == "egress"
	some reason in egress.allow
}

_allow contains reason if {
	input.kind == "trigger"
	some reason in trigger.allow
}

_obligations contains obligation if {
	input.kind == "call"
	some obligation in call.obligations
}

_obligations contains obligation if some obligation in site.obligations
