"""Scores the end state of a task's databases; each task's ground truth has a copy of this file.

AppWorld calls `evaluate`. What is required of the task is listed in its private data.
"""

from __future__ import annotations

import json
from operator import attrgetter
from typing import Any


def evaluate(
    test: Any,
    public_data: Any,  # noqa: ARG001  AppWorld passes these by name
    private_data: Any,
    main_user: Any,  # noqa: ARG001
    models: Any,
    ground_truth_answer: Any,
) -> Any:
    """Check each requirement of the task in turn and return the tracker `test`."""
    for wanted in private_data["requirements"]:
        with test(wanted["requirement"]):
            if wanted["kind"] == "answer":
                _check_answer(test, models, ground_truth_answer)
            elif wanted["kind"] == "scope":
                _check_scope(test, models, wanted)
            elif wanted["kind"] == "rows":
                _check_rows(test, models, wanted)
            else:
                _check_fields(test, models, wanted)
    return test


def _check_answer(test: Any, models: Any, expected: Any) -> None:
    task = models.end.supervisor.Task.all()[0]
    test.case(task.status, "==", "success")
    test.answer(json.loads(task.answer), expected)


def _check_scope(test: Any, models: Any, wanted: Any) -> None:
    for model in sorted(models.changed_model_names()):
        changes = zip(("added", "updated", "removed"), models.changed_records(model), strict=True)
        found = {change: records for change, records in changes if records}
        if model.endswith(".User"):
            # A login writes its time; nothing else of an account may change.
            usual = {"last_logged_in"} | (
                {"venmo_balance"} if model in wanted["updated"] else set()
            )
            for record in found.pop("updated", ()):
                fields = set(models.changed_field_names(model, record.id))
                test.case(sorted(fields - usual), "==", [])
        for change in found:
            test.case(model, "in", [*wanted[change]])


def _check_rows(test: Any, models: Any, wanted: Any) -> None:
    added, _, removed = models.changed_records(wanted["model"])
    rows = added if wanted["change"] == "added" else removed
    # What a row belongs to is looked up in the databases that were asked for last.
    _ = models.end if wanted["change"] == "added" else models.start
    found = [{name: attrgetter(name)(row) for name in wanted["fields"]} for row in rows]
    test.case(_sorted(found), "==", _sorted([dict(row) for row in wanted["rows"]]))


def _check_fields(test: Any, models: Any, wanted: Any) -> None:
    model, field = wanted["model"], wanted["field"]
    _, updated, _ = models.changed_records(model)
    found = []
    for record in updated:
        changed = set(models.changed_field_names(model, record.id))
        test.case(sorted(changed - {field, *wanted["beside"]}), "==", [])
        if field in changed:
            found.append([record.id, _plain(getattr(record, field))])
    test.case(sorted(found), "==", sorted([row[0], _plain(row[1])] for row in wanted["values"]))


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; of texts, blank lines and outer spaces do not count."""
    if isinstance(value, float):
        return round(value, 2)
    if isinstance(value, str):
        return "\n".join(line.strip() for line in value.splitlines() if line.strip())
    return value.isoformat() if hasattr(value, "isoformat") else value


def _sorted(rows: list[dict[str, Any]]) -> list[str]:
    plain = [{name: _plain(value) for name, value in row.items()} for row in rows]
    return sorted(json.dumps(row, sort_keys=True) for row in plain)
