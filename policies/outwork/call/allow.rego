# METADATA
# title: Questions about a capability call
# scope: package
# schemas:
#   - input: schema.input.call
#   - data.settings.call: schema.settings.call
#   - data.settings.effects: schema.settings.effects
#   - data.settings.strictness: schema.settings.strictness
package outwork.call

# METADATA
# title: A known capability, asked for by a caller it is meant for
# description: |
#   The kernel checks the callers of a capability too, before it asks; this is the security team's own list.
# custom:
#   code: capability_allowed
#   threat: capability-misuse
#   solution: Name capability and caller below `allowed` in data/call.yaml.
allow contains {
	"code": rego.metadata.rule().custom.code,
	"message": concat("", [input.capability, " is allowed for ", input.caller, "."]),
} if {
	input.caller in data.settings.call.allowed[input.capability]
}
