package outwork.site

# METADATA
# title: An obligation of the site that would loosen something
# description: A lowered effect class lets a command run twice; only the reviewed patterns of data/effects.yaml do that.
# custom:
#   code: site_obligation_refused
#   threat: floor-widened
#   solution: Have the site's rule tighten (output_limit, reserve, redact, audit, effect_class once) or deny.
deny contains {
	"code": rego.metadata.rule().custom.code,
	"message": "A rule of the site asks for an obligation that would loosen this call.",
} if {
	some obligation in obligations
	not _tightens(obligation)
}

_tightens(obligation) if obligation.kind in {"audit", "leaks", "output_limit", "redact", "reserve"}

_tightens(obligation) if {
	obligation.kind == "effect_class"
	obligation.class == "once"
}
