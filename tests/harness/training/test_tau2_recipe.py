"""The recipe `tau2-gigpo-tiny`, whole: it learns what becomes of cancellations."""

import pytest

from harness import config as configs
from harness.runs import metrics
from harness.training import setup


def rise(folder, seed):
    """Return the success at the first step, and how much more the last four have."""
    where = [f"run.output='{folder}'", f"run.name='{seed}'", "run.threads=1", "eval.every=0"]
    setup.start(configs.load("tau2-gigpo-tiny", [*where, f"run.seed={seed}"])).run()
    steps = [r for r in metrics.read(folder / str(seed)) if "rollout/success" in r]
    first, *_, a, b, c, d = (r["rollout/success"] for r in steps)
    return first, (a + b + c + d) / 4 - first


@pytest.mark.slow
def test_success_rises_in_the_mean_of_three_seeds(tmp_path):
    found = [rise(tmp_path, seed) for seed in range(3)]
    assert all(first < 0.5 for first, _ in found), f"nothing is left to learn: {found}"
    assert all(more > 0 for _, more in found), found
    assert sum(more for _, more in found) / 3 > 0.1, found
