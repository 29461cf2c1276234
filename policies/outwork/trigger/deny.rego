package outwork.trigger

# METADATA
# title: A trigger that acts for somebody else
# description: A trigger posts as the user of its scope; only that user makes it or takes it away.
# custom:
#   code: trigger_of_another
#   threat: confused-deputy
#   solution: Have the user that the trigger acts for do it.
deny contains {
	"code": rego.metadata.rule().custom.code,
	"message": "A trigger is made and taken away by the user it acts for.",
} if {
	input.actor.user != input.scope.user
}

# METADATA
# title: A source that is denied
# custom:
#   code: trigger_source_denied
#   threat: persistence
#   solution: Take the source out of `denied` in data/trigger.yaml.
deny contains {
	"code": rego.metadata.rule().custom.code,
	"message": concat("", ["Triggers by ", input.source, " are denied."]),
} if {
	input.action == "create"
	input.source in data.settings.trigger.denied
}

# METADATA
# title: A trigger's run makes another trigger
# description: One approval would otherwise breed any number of runs that nobody has seen. Only under `strict`.
# custom:
#   code: trigger_breeds
#   threat: persistence
#   solution: Make the trigger from a conversation, or choose `balanced` in data/strictness.yaml, under which it asks.
deny contains {
	"code": rego.metadata.rule().custom.code,
	"message": "A run that a trigger started makes no further trigger.",
} if {
	data.settings.strictness.level == "strict"
	input.action == "create"
	input.caller == "executor"
	input.origin == "trigger"
}
