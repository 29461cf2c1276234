# METADATA
# title: Questions about triggers, which start runs when nobody is there
# scope: package
# schemas:
#   - input: schema.input.trigger
#   - data.settings.strictness: schema.settings.strictness
#   - data.settings.trigger: schema.settings.trigger
package outwork.trigger

# METADATA
# title: A trigger is made or taken away by a caller it is meant for
# custom:
#   code: trigger_allowed
#   threat: persistence
#   solution: Name the caller below `allowed` in data/trigger.yaml.
allow contains {
	"code": rego.metadata.rule().custom.code,
	"message": concat("", [input.caller, " may ", input.action, " a trigger."]),
} if {
	input.caller in data.settings.trigger.allowed[input.action]
}

# METADATA
# title: A source whose triggers a person approves
# custom:
#   code: trigger_source_asks
#   threat: persistence
#   solution: Have an approver answer, or take the source out of `ask` in data/trigger.yaml.
ask contains {
	"code": rego.metadata.rule().custom.code,
	"message": concat("", ["A trigger by ", input.source, " needs an approval."]),
} if {
	input.action == "create"
	input.source in data.settings.trigger.ask
}

# METADATA
# title: An executor makes a trigger
# description: Whatever talked the agent into it would come back when nobody looks. No data takes this ask away.
# custom:
#   code: trigger_by_executor
#   threat: persistence
#   solution: Have an approver answer, or make the trigger yourself.
ask contains {
	"code": rego.metadata.rule().custom.code,
	"message": "An agent makes a trigger only when a person approves it.",
} if {
	input.action == "create"
	input.caller == "executor"
}
