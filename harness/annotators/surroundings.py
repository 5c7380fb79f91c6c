"""What an annotator works with, and the tokens of rollouts as it sees them.

Arrays over tokens hold the policy's own tokens of all turns, in the turns' order: shape [A].
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from harness.credit.table import Floats, Ints
from harness.errors import TrainingError
from harness.packing import Sample, samples
from harness.policy import Policy
from harness.ranks import ALONE, Ranks
from harness.rollout import Rollout
from harness.scoring import score
from harness.sharding import clip


@dataclass(frozen=True, slots=True, eq=False)
class Surroundings:
    """The run that annotators are part of.

    Attributes:
        policy: The one that is trained; it played the rollouts that are annotated.
        reference: The policy before training, or None if nobody needs it.
        context: What a training sequence is: `"window"` or `"transcript"`.
        rows: What a row of the turn table is: `"turn"` or `"token"`.
        temperature: The rollouts were sampled at.
        max_tokens: Padded tokens of one forward pass.
        estimator: Name of the method's.
        credit: Its hyperparameters, those of its base included.
        ranks: The processes that the models of annotators are dealt to, as the policy is.
    """

    policy: Policy
    reference: Policy | None = None
    context: str = "window"
    rows: str = "turn"
    temperature: float = 1.0
    max_tokens: int = 8192
    estimator: str = "gae"
    credit: Mapping[str, Any] = field(default_factory=dict)
    ranks: Ranks = ALONE

    def sequences(
        self, rollouts: Sequence[Rollout], weight: Floats | Sequence[Floats] | None = None
    ) -> list[Sample]:
        """Return the training sequences of rollouts.

        Args:
            rollouts: With N turns together.
            weight: Taken as `advantage`: of each turn, or of each turn's tokens. 0 if None.
        """
        if weight is None:
            weight = np.zeros(sum(len(rollout.turns) for rollout in rollouts))
        return samples(rollouts, weight, self.context)

    def scores(self, policy: Policy, rollouts: Sequence[Rollout]) -> tuple[Floats, Floats]:
        """Return log-probability and entropy of every token under a policy. Shapes [A], [A]."""
        told = score(policy, self.sequences(rollouts), self.temperature, self.max_tokens)
        return _joined(t.logprob for t in told), _joined(t.entropy for t in told)

    def as_rows(self, x: Floats, lengths: Ints, *, mean: bool = False) -> Floats:
        """Return numbers of tokens as numbers of the table's rows: themselves, or turns' sums.

        Args:
            x: Of tokens. Shape [A].
            lengths: Tokens of each turn. Shape [N].
            mean: Means over a turn's tokens, not sums.
        """
        if self.rows == "token" or not len(lengths):
            return x
        sums = np.add.reduceat(x, np.cumsum(lengths) - lengths)
        return sums / lengths if mean else sums


def lengths_of(rollouts: Sequence[Rollout]) -> Ints:
    """Return the number of response tokens of every turn. Shape [N]."""
    turns = [turn for rollout in rollouts for turn in rollout.turns]
    return np.asarray([len(turn.completion.response_ids) for turn in turns], dtype=np.int64)


def _joined(parts: Iterable[Floats]) -> Floats:
    return np.concatenate([np.zeros(0), *parts])


def optimizer_step(optimizer: torch.optim.Optimizer, max_norm: float, who: str) -> float:
    """Take a step along gradients whose norm is cut to `max_norm`, and return the norm before.

    Raises:
        TrainingError: The gradient is not finite.
    """
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    norm = clip(parameters, max_norm)
    if not math.isfinite(norm):
        raise TrainingError(f"the gradient norm of {who} is {norm}: lower its learning_rate")
    optimizer.step()
    return norm
