package outwork_test

import data.outwork

_settings := {
	"call": {
		"allowed": {"fs.read": ["product"], "shell.exec": ["executor"]},
		"ask": ["fs.read"],
		"denied_programs": ["curl"],
		"launchers": [],
		"limits": {"shell.exec": {"wall_ms": 5}, "fs.read": {"output_bytes": 7}},
	},
	"effects": {"plain_env": [], "programs": {}},
	"strictness": {"level": "strict"},
	"placement": {"allowed": ["disposable-per-run"], "own_harnesses": [], "reviewed": []},
	"egress": {
		"hosts": {"example.com": [{"ports": [443], "schemes": ["https"], "methods": ["GET"], "paths": ["/**"]}]},
		"addresses": {},
		"denied": {},
	},
	"trigger": {"allowed": {"create": ["product"]}, "ask": ["webhook"], "denied": []},
}

_shell(argv) := {
	"kind": "call",
	"capability": "shell.exec",
	"caller": "executor",
	"effect_class": "once",
	"args": {"argv": argv, "argv_length": count(argv), "env": [], "background": false},
}

_codes(decision) := {reason.code | some reason in decision.reasons}

test_success_allow_carries_reasons_and_obligations if {
	decision := outwork.decision with input as _shell(["make"]) with data.settings as _settings
	decision.effect == "allow"
	_codes(decision) == {"capability_allowed"}
	decision.obligations == {{"kind": "reserve", "wall_ms": 5}}
}

test_fail_deny_beats_allow if {
	decision := outwork.decision with input as _shell(["curl"]) with data.settings as _settings
	decision.effect == "deny"
	_codes(decision) == {"program_denied"}
	decision.obligations == []
}

test_success_ask_beats_allow if {
	question := {"kind": "call", "capability": "fs.read", "caller": "product", "effect_class": "pure", "args": {}}
	decision := outwork.decision with input as question with data.settings as _settings
	decision.effect == "ask"
	_codes(decision) == {"approval_required"}
	decision.obligations == {{"kind": "output_limit", "bytes": 7}}
}

test_fail_deny_beats_ask if {
	settings := object.union(_settings, {"call": {"ask": ["shell.exec"]}})
	decision := outwork.decision with input as _shell(["curl"]) with data.settings as settings
	decision.effect == "deny"
}

test_fail_ask_needs_an_allow_too if {
	question := {"kind": "call", "capability": "fs.read", "caller": "executor", "effect_class": "pure", "args": {}}
	decision := outwork.decision with input as question with data.settings as _settings
	decision.effect == "deny"
	_codes(decision) == {"no_rule_allows"}
}

test_success_placement if {
	question := {"kind": "placement", "placement": "disposable-per-run", "harness": "native", "profile": "development"}
	decision := outwork.decision with input as question with data.settings as _settings
	decision.effect == "allow"
	_codes(decision) == {"placement_allowed"}
}

test_fail_placement if {
	question := {"kind": "placement", "placement": "host-loop-shell", "harness": "other", "profile": "development"}
	decision := outwork.decision with input as question with data.settings as _settings
	decision.effect == "deny"
	_codes(decision) == {"harness_needs_sandbox"}
}

test_fail_what_no_rule_knows_is_denied[note] if {
	some note, question in {
		"empty": {},
		"unknown kind": {"kind": "teleport", "capability": "shell.exec", "caller": "executor"},
		"kind as a list": {"kind": ["call"], "capability": "shell.exec", "caller": "executor"},
		"unknown capability": {"kind": "call", "capability": "sandbox.manage", "caller": "executor"},
		"text": "call",
	}
	decision := outwork.decision with input as question with data.settings as _settings
	decision.effect == "deny"
	_codes(decision) == {"no_rule_allows"}
}

test_fail_without_data_everything_is_denied if {
	decision := outwork.decision with input as _shell(["make"]) with data.settings as {}
	decision.effect == "deny"
}

test_success_approval if {
	question := {"kind": "approval", "answer": "approve", "actor": {"user": "ada"}, "approver": {"user": "bob", "roles": ["approver"]}}
	decision := outwork.decision with input as question with data.settings as _settings
	decision.effect == "allow"
	_codes(decision) == {"approver_answers"}
}

test_fail_approval_of_ones_own if {
	question := {"kind": "approval", "answer": "approve", "actor": {"user": "ada"}, "approver": {"user": "ada", "roles": ["approver"]}}
	decision := outwork.decision with input as question with data.settings as _settings
	decision.effect == "deny"
	_codes(decision) == {"self_approval"}
}

_request(host) := {
	"kind": "egress",
	"scope": {"tenant": "acme", "user": "ada"},
	"scheme": "https",
	"method": "GET",
	"host": host,
	"port": 443,
	"path": "/",
	"headers": [],
	"recipe": "",
	"credential": "none",
}

test_success_egress if {
	decision := outwork.decision with input as _request("example.com") with data.settings as _settings
	decision.effect == "allow"
	_codes(decision) == {"request_listed"}
}

test_fail_egress if {
	decision := outwork.decision with input as _request("example.org") with data.settings as _settings
	decision.effect == "deny"
	_codes(decision) == {"host_not_listed"}
}

test_fail_egress_never_asks if {
	decision := outwork.decision with input as _request("example.com") with data.settings as _settings
		with data.site as {"egress": {"ask": [{"code": "look_first", "message": "Look first."}]}}
	decision.effect == "deny"
	_codes(decision) == {"ask_is_deny"}
}

_trigger(source, actor) := {
	"kind": "trigger",
	"scope": {"tenant": "acme", "user": "ada"},
	"actor": {"user": actor, "roles": ["user"]},
	"origin": "interactive",
	"action": "create",
	"caller": "product",
	"source": source,
}

test_success_trigger[effect] if {
	some effect, source in {"allow": "schedule", "ask": "webhook"}
	decision := outwork.decision with input as _trigger(source, "ada") with data.settings as _settings
	decision.effect == effect
}

test_fail_trigger if {
	decision := outwork.decision with input as _trigger("schedule", "bob") with data.settings as _settings
	decision.effect == "deny"
	_codes(decision) == {"trigger_of_another"}
}

_site_says(rules) := decision if {
	decision := outwork.decision with input as _shell(["make"]) with data.settings as _settings with data.site as {"call": rules}
}

test_fail_site_denies if {
	decision := _site_says({"deny": [{"code": "site_says_no", "message": "No."}]})
	decision.effect == "deny"
	_codes(decision) == {"site_says_no"}
}

test_success_site_asks if {
	decision := _site_says({"ask": [{"code": "site_asks_first", "message": "First ask."}]})
	decision.effect == "ask"
}

test_success_site_obliges if {
	decision := _site_says({"obligations": [{"kind": "output_limit", "bytes": 9}]})
	decision.effect == "allow"
	{"kind": "output_limit", "bytes": 9} in decision.obligations
}

test_fail_site_cannot_allow if {
	rules := {"call": {"allow": [{"code": "x", "message": "X."}]}}
	question := {"kind": "call", "capability": "fs.write", "caller": "executor"}
	decision := outwork.decision with input as question with data.settings as _settings with data.site as rules
	decision.effect == "deny"
	_codes(decision) == {"no_rule_allows"}
}
