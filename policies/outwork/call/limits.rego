package outwork.call

# METADATA
# title: Less output than the kernel would capture
# custom:
#   code: output_limited
#   threat: output-flood
#   solution: Raise or remove `output_bytes` of the capability below `limits` in data/call.yaml.
obligations contains {"kind": "output_limit", "bytes": bytes} if {
	bytes := data.settings.call.limits[input.capability].output_bytes
}

# METADATA
# title: Less time than the kernel would reserve
# custom:
#   code: time_limited
#   threat: resource-exhaustion
#   solution: Raise or remove `wall_ms` of the capability below `limits` in data/call.yaml.
obligations contains {"kind": "reserve", "wall_ms": wall_ms} if {
	wall_ms := data.settings.call.limits[input.capability].wall_ms
}
