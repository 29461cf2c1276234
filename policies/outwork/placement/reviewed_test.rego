package outwork.placement_test

import data.outwork.placement

_row := {"placement": "disposable-per-run", "engine": "docker", "wall": "gvisor"}

_seated(changes, reviewed) := codes if {
	reasons := placement.deny with input as object.union(object.union(_row, {"profile": "production", "harness": "native"}), changes)
		with data.settings.placement as {"own_harnesses": ["native"], "reviewed": reviewed}
	codes := _codes(reasons)
}

test_success_reviewed if _seated({}, [_row]) == set()

test_success_development_needs_no_review if _seated({"profile": "development"}, []) == set()

test_fail_not_reviewed[note] if {
	some note, row in {
		"nothing is reviewed": {"changes": {}, "reviewed": []},
		"another placement": {"changes": {"placement": "persistent-per-user"}, "reviewed": [_row]},
		"another engine": {"changes": {"engine": "bubblewrap"}, "reviewed": [_row]},
		"another wall": {"changes": {"wall": "namespaces"}, "reviewed": [_row]},
	}
	_seated(row.changes, row.reviewed) == {"placement_not_reviewed"}
}
