"""Training on transcripts without earlier thoughts: the update reads what was generated."""

import pytest
from small_training import lines, run, small

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("thoughts", ["keep", "strip"])
def test_recomputed_log_probabilities_are_those_of_the_rollouts(tmp_path, thoughts):
    trainer = run(
        small(
            tmp_path,
            thoughts,
            "agent.context='transcript'",
            f"agent.thoughts={thoughts!r}",
            "agent.style='think'",
            "agent.max_tokens=40",
            "warmstart.episodes=20",
            "warmstart.steps=60",
            "run.steps=1",
            "rollout.tasks_per_step=2",
            "rollout.group_size=2",
            "rollout.old_logprobs='recompute'",
            "eval.tasks=1",
        )
    )
    (step,) = [one for one in lines(trainer) if "update/loss" in one]
    assert step["mismatch/difference_max"] < 1e-3
    assert step["rollout/thought_tokens"] > 0
