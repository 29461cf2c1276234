# METADATA
# title: What the rules of a site add
# description: |
#   An installation's own rules are packages `site.<kind>`, compiled together with these (`policies.dir` in the configuration). They can deny,
#   ask and add obligations that tighten. Nothing of theirs is read as an allow, so they cannot widen what is decided here.
package outwork.site

# METADATA
# title: Denials of the site
# scope: document
# custom:
#   code: site_denies
#   threat: site-specific
#   solution: The reason carries the code of the site's own rule; its METADATA says what to do.
deny contains reason if {
	input.kind == "call"
	some reason in data.site.call.deny
}

deny contains reason if {
	input.kind == "placement"
	some reason in data.site.placement.deny
}

deny contains reason if {
	input.kind == "approval"
	some reason in data.site.approval.deny
}

deny contains reason if {
	input.kind == "egress"
	some reason in data.site.egress.deny
}

deny contains reason if {
	input.kind == "trigger"
	some reason in data.site.trigger.deny
}

# METADATA
# title: Asks of the site
# scope: document
# custom:
#   code: site_asks
#   threat: site-specific
#   solution: The reason carries the code of the site's own rule; its METADATA says what to do.
ask contains reason if {
	input.kind == "call"
	some reason in data.site.call.ask
}

ask contains reason if {
	input.kind == "trigger"
	some reason in data.site.trigger.ask
}

# METADATA
# title: Obligations of the site
# scope: document
# custom:
#   code: site_obliges
#   threat: site-specific
#   solution: Change the site's own rule.
obligations contains obligation if {
	input.kind == "call"
	some obligation in data.site.call.obligations
}
