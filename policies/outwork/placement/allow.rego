# METADATA
# title: Questions about where a run may be placed
# scope: package
# schemas:
#   - input: schema.input.placement
#   - data.settings.placement: schema.settings.placement
package outwork.placement

# METADATA
# title: A placement that this installation offers
# custom:
#   code: placement_allowed
#   threat: unwanted-placement
#   solution: Name the placement below `allowed` in data/placement.yaml.
allow contains {
	"code": rego.metadata.rule().custom.code,
	"message": concat("", ["Placement ", input.placement, " is allowed."]),
} if {
	input.placement in data.settings.placement.allowed
}
