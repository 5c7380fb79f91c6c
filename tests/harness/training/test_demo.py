"""The recipes for a CPU, cut to a part of their steps: minutes on two cores."""

import pytest

from harness import config as configs
from harness.runs import metrics
from harness.training import setup


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "steps", "split", "tasks", "gain"),
    [
        ("alfworld-tiny", 16, "valid_unseen", 240, 0.08),
        ("sokoban-tiny", 40, "test", 1000, 0.05),
        ("webshop-tiny", 20, "valid", 200, 0.05),
    ],
)
def test_it_learns_what_holds_on_tasks_it_never_played(tmp_path, recipe, steps, split, tasks, gain):
    settings = [
        f"run.output='{tmp_path}'",
        "run.name='demo'",
        "run.seed=1",
        f"run.steps={steps}",
        "eval.every=0",
        f"eval.split='{split}'",
        f"eval.tasks={tasks}",
        "eval.final_splits=[]",
    ]
    setup.start(configs.load(recipe, settings)).run()
    records = metrics.read(tmp_path / "demo")
    success = [r[name] for r in records if (name := f"eval/{split}/success") in r]
    assert success[-1] - success[0] >= gain, success
    assert (tmp_path / "demo/curve.png").stat().st_size > 10_000
