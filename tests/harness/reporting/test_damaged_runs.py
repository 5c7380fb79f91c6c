"""A wrong value anywhere in a training run's files is told as such, or does no harm."""

import copy
import json

import pytest
from made_results import LOST, WON, keep_run

from harness.reporting import report_output, run_report
from harness.reporting.results import training_runs
from harness.types.errors import ResultError

WRONG = (None, "x", [], {}, -1, 1e308, [[]], {"a": 1})


def places(value, path=()):
    """Yield the place of every value in JSON, of lists the first two."""
    inside = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        inside = list(enumerate(value))[:2]
    for key, one in inside:
        yield (*path, key)
        yield from places(one, (*path, key))


def changes(value):
    """Yield copies of a value with one place left out or replaced."""
    for *way, last in places(value):
        for wrong in (*WRONG, changes):
            changed = copy.deepcopy(value)
            parent = changed
            for key in way:
                parent = parent[key]
            if wrong is not changes:
                parent[last] = wrong
            elif isinstance(parent, dict):
                del parent[last]
            yield (*way, last), changed


@pytest.mark.parametrize("name", ["config.json", "evaluations/step-000009-valid_seen.json"])
def test_a_wrong_value_is_a_result_error_or_none(tmp_path, name):
    folder = keep_run(tmp_path / "run", {(0, "valid_seen"): WON, (9, "valid_seen"): LOST})
    whole = json.loads((folder / name).read_text())
    told = 0
    for place, changed in changes(whole):
        (folder / name).write_text(json.dumps(changed))
        try:
            run = training_runs.read(folder)
            run_report.table(run.evaluations, run.world)
            report_output.tables([folder])
        except ResultError:
            told += 1
        except Exception as e:
            raise AssertionError(f"{name}: {place}") from e
    assert told > 20
