"""Rollouts of random words."""

import numpy as np

from agentgyms.core import Feedback
from harness.types.rollout import Completion, Rollout, Turn

WORDS = ("go to drawer 1", "take mug 2", "open door", "put a clean plate in cabinet")


def episode(policy, group, member, success, num_turns, rng, context="window"):
    """A rollout of random words, whose prompts go on from each other in a transcript."""
    turns, prompt = [], ()
    for i in range(num_turns):
        asked = policy.encode_chat([{"role": "user", "content": rng.choice(WORDS)}])
        prompt = prompt + asked if context == "transcript" else asked
        said = (*rng.integers(3, 40, rng.integers(1, 4)).tolist(), policy.tokenizer.eos_token_id)
        completion = Completion("", prompt, said, (-1.0,) * len(said))
        reward = float(success and i == num_turns - 1)
        key, after = f"s{i}", f"s{i + 1}"
        feedback = Feedback.OK.value
        turns.append(
            Turn("here", key, completion, "go", "go", feedback, reward, "shelf key", after, 0.0)
        )
        prompt += said
    return Rollout("task", "", group, member, 0, turns=turns, success=success)


def some_rollouts(policy, context="window", groups=3, seed=0):
    """In each group two successes and two failures, of one to three turns."""
    rng = np.random.default_rng(seed)
    return [
        episode(policy, g, m, m < 2, int(rng.integers(1, 4)), rng, context)
        for g in range(groups)
        for m in range(4)
    ]
