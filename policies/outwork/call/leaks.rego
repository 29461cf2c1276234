package outwork.call

# METADATA
# title: What happens to secrets in a result
# description: |
#   The kernel always replaces live secrets in a result and tells of what looks like a credential. Here a capability can be held to more:
#   `shapes: redact` replaces what looks like one too, `block` keeps the whole result back. What is read from a file is only told of.
# custom:
#   code: leaks_held
#   threat: secret-leak
#   solution: Raise or remove the capability below `leaks` in data/call.yaml.
obligations contains {"kind": "leaks", "exact": terms.exact, "shapes": terms.shapes} if {
	terms := data.settings.call.leaks[input.capability]
}
