package outwork.placement

# METADATA
# title: Production on a combination that nobody has reviewed
# custom:
#   code: placement_not_reviewed
#   threat: unreviewed-wall
#   solution: Have placement, engine and wall reviewed and add them to `reviewed` in data/placement.yaml; or use the profile development.
deny contains {
	"code": rego.metadata.rule().custom.code,
	"message": concat("", [
		"Production needs a review of ", input.placement,
		" on ", input.engine,
		" (", input.wall,
		"); there is none.",
	]),
} if {
	input.profile == "production"
	not _reviewed
}

_reviewed if {
	some row in data.settings.placement.reviewed
	row.placement == input.placement
	row.engine == input.engine
	row.wall == input.wall
}
