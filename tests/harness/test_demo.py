"""The recipes for a CPU, whole: minutes on two cores."""

import pytest

from harness import config as configs
from harness import metrics, starting


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "splits", "gain"),
    [
        ("alfworld-tiny", ("valid_seen", "valid_unseen"), 0.25),
        ("sokoban-tiny", ("valid", "test"), 0.1),
        ("webshop-tiny", ("valid",), 0.1),
    ],
)
def test_it_learns_what_holds_on_tasks_it_never_played(tmp_path, recipe, splits, gain):
    settings = [f"run.output='{tmp_path}'", "run.name='demo'", "run.seed=1", "eval.every=0"]
    starting.start(configs.load(recipe, settings)).run()
    records = metrics.read(tmp_path / "demo")
    for split in splits:
        success = [r[name] for r in records if (name := f"eval/{split}/success") in r]
        assert success[-1] - success[0] >= gain, f"{split}: {success}"
    assert (tmp_path / "demo/curve.png").stat().st_size > 10_000
