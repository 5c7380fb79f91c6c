"""The recipes of the exact games rise within a minute of a CPU."""

import pytest

from harness import config as configs
from harness.runs import metrics
from harness.training import setup


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "split", "gain"),
    [
        ("frozenlake-tiny", "valid_seen", 0.25),
        ("minesweeper-tiny", "valid_seen", 0.1),
        ("numberline-tiny", "train", 0.2),
    ],
)
def test_success_rises(tmp_path, recipe, split, gain):
    settings = [f"run.output='{tmp_path}'", "run.name='demo'", "run.seed=1", "eval.every=0"]
    setup.start(configs.load(recipe, settings)).run()
    records = metrics.read(tmp_path / "demo")
    success = [r[name] for r in records if (name := f"eval/{split}/success") in r]
    assert success[-1] - success[0] >= gain, success
