package outwork_test

import data.outwork

# Every row of cases/*.yaml, as `outwork policy test` hands them over: each with its whole question. The compiled rules answer the same rows.
test_cases[note] if {
	some row in data.cases
	note := concat(": ", [row.kind, row.note])
	settings := object.union(data.settings, object.get(row, "settings", {}))
	decision := outwork.decision with input as row.input with data.settings as settings
	decision.effect == row.effect
	_codes(decision) == {code | some code in row.codes}
	{obligation.kind | some obligation in decision.obligations} == {obligation.kind | some obligation in row.obligations}
}
