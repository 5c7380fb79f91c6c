"""The recipe `tau2-gigpo-tiny`, whole: it learns which reasons the shop's policy gives."""

import pytest

from harness import config as configs
from harness.runs import metrics
from harness.training import setup


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_success_rises(tmp_path, seed):
    where = [f"run.output='{tmp_path}'", "run.name='run'", "run.threads=1", "eval.every=0"]
    setup.start(configs.load("tau2-gigpo-tiny", [*where, f"run.seed={seed}"])).run()
    steps = [r for r in metrics.read(tmp_path / "run") if "rollout/success" in r]
    success = [r["rollout/success"] for r in steps]
    assert success[0] < 0.5, f"the warm start leaves nothing to learn: {success}"
    assert sum(success[-4:]) / 4 - success[0] > 0.1, success
