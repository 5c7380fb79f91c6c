"""Chooses one of a task's episodes (self-consistency: Wang et al. 2022, arXiv:2203.11171)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from harness.types.errors import ConfigError
from harness.types.rollout import Rollout, StopReason


def by_likelihood(played: Sequence[Rollout]) -> int:
    """Return the episode with the largest sum of log-probabilities over all its answers' tokens.

    An episode without an answer is never preferred; of equal ones the first is returned. Raises
    `ConfigError` if the completer reports no log-probabilities.
    """
    return max(range(len(played)), key=lambda i: _logprob(played[i]))


def _logprob(rollout: Rollout) -> float:
    answers = [answer for turn in rollout.turns for answer in turn.answers]
    if any(not answer.logprobs for answer in answers):
        raise ConfigError(
            "search.select is 'likelihood', and the model reports no log-probabilities of its "
            "tokens: run it in this process (--backend hf or vllm), or choose 'majority'"
        )
    return sum(math.fsum(answer.logprobs) for answer in answers) if answers else -math.inf


def by_majority(played: Sequence[Rollout]) -> int:
    """Return the first episode that ended with the most frequent last action, by its key."""
    ended = {
        i: rollout.turns[-1].action_key
        for i, rollout in enumerate(played)
        if rollout.stop_reason is StopReason.TERMINATED and rollout.turns
    }
    if not ended:
        return 0
    [(answer, _)] = Counter(ended.values()).most_common(1)
    return next(i for i, given in ended.items() if given == answer)


def by_outcome(played: Sequence[Rollout]) -> int:
    """Return the first of the best episodes by success, then by score: an oracle's choice."""
    return max(range(len(played)), key=lambda i: (played[i].success, played[i].score))


SELECT: Final[dict[str, Callable[[Sequence[Rollout]], int]]] = {
    "likelihood": by_likelihood,
    "majority": by_majority,
    "oracle": by_outcome,
}
"""By the values of `search.select`; each takes the episodes, at least one, and returns a place."""
