"""The supervised baselines learn: each raises the success of a weak policy on the same tasks."""

import pytest
from small_training import run, small

from harness.runs import metrics

TASKS = 40
"""Of the corridor's training split; a pass over it takes ten steps."""


def trained(tmp_path, method, rate, steps):
    """Metrics of a run from a weak policy."""
    trainer = run(
        small(
            tmp_path,
            method,
            f"method.name='{method}'",
            "method.loss={}",
            "warmstart.steps=24",
            "rollout.group_size=8",
            f"optimizer.learning_rate={rate}",
            f"run.steps={steps}",
            "eval.every=0",
            "eval.final_splits=['train']",
            "checkpoint.every=100",
        )
    )
    return metrics.read(trainer.folder.path)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["sft", "rft", "ei"])
def test_imitation_raises_success(tmp_path, method):
    """SFT sees the expert, RFT the first policy's successes, expert iteration the policy's own."""
    records = trained(tmp_path, method, 1e-3, 10)
    before, after = (r["eval/train/success"] for r in records if "eval/train/success" in r)
    assert before < 0.75
    assert after > before + 0.1


@pytest.mark.slow
def test_preferences_raise_success(tmp_path):
    """DMPO, on the same tasks in the third pass over them as in the first: 320 episodes each."""
    records = trained(tmp_path, "dmpo", 6e-4, 3 * TASKS // 4)
    rates = [r["rollout/success"] for r in records if "rollout/success" in r]
    first, last = sum(rates[:10]) / 10, sum(rates[-10:]) / 10
    assert first < 0.7
    assert last > first + 0.08  # two standard deviations of their difference
