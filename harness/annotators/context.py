"""The context of annotators; arrays over tokens, [A], have all turns' sampled response tokens."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch

from harness.distributed.fsdp import clip_grad_norm
from harness.distributed.process_group import SINGLE_PROCESS, ProcessGroup
from harness.model.logprobs import score_tokens
from harness.model.packing import Sample, samples
from harness.model.policy import Policy
from harness.types.arrays import Floats, Ints
from harness.types.errors import TrainingError
from harness.types.rollout import Rollout


class AnswerStyle(Protocol):
    """A prompt style, as `harness.prompts.PromptStyle`, for the answers that it writes."""

    @property
    def name(self) -> str:
        """The style's name, such as `alfworld/think`."""
        ...

    def answer(self, action: str) -> str:
        """Return the answer that parses to an action."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class AnnotatorContext:
    """The models and settings that the annotators of a run share."""

    policy: Policy  # the policy in training, which generated the rollouts
    reference: Policy | None = None  # the policy before training, or None if no annotator needs it
    # The unit of a training sequence: `"window"` (a turn), `"transcript"` (a rollout) or
    # `"summary"` (a part of one).
    context: str = "window"
    rows: str = "turn"  # the unit of a row of the turn table: `"turn"` or `"token"`
    temperature: float = 1.0  # sampling temperature of the rollouts
    max_tokens: int = 8192  # largest number of tokens, padding included, of one forward pass
    estimator: str = "gae"  # name of the method's estimator
    # The estimator's hyperparameters, those of its base included.
    credit: Mapping[str, Any] = field(default_factory=dict)
    processes: ProcessGroup = SINGLE_PROCESS  # the processes that share the annotators' models
    # The run's prompt style, which writes answers; None where no annotator needs it.
    style: AnswerStyle | None = None

    def sequences(
        self, rollouts: Sequence[Rollout], weight: Floats | Sequence[Floats] | None = None
    ) -> list[Sample]:
        """Return training sequences; `weight`, [N] or by tokens, is their `advantage` (None: 0)."""
        if weight is None:
            weight = np.zeros(sum(len(rollout.turns) for rollout in rollouts))
        return samples(rollouts, weight, self.context)

    def scores(self, policy: Policy, rollouts: Sequence[Rollout]) -> tuple[Floats, Floats]:
        """Return log-probability and entropy of every token under a policy. Shapes [A], [A]."""
        scored = score_tokens(policy, self.sequences(rollouts), self.temperature, self.max_tokens)
        return _joined(s.logprob for s in scored), _joined(s.entropy for s in scored)

    def as_rows(self, x: Floats, lengths: Ints, *, mean: bool = False) -> Floats:
        """Return values of tokens [A] as values of rows: unchanged, or turns' sums or means."""
        if self.rows == "token" or not len(lengths):
            return x
        sums = np.add.reduceat(x, np.cumsum(lengths) - lengths)
        return sums / lengths if mean else sums


def _joined(parts: Iterable[Floats]) -> Floats:
    return np.concatenate([np.zeros(0), *parts])


def optimizer_step(optimizer: torch.optim.Optimizer, max_norm: float, who: str) -> float:
    """Clip the gradient norm to `max_norm`, take an optimizer step, return the norm before.

    Raises `TrainingError`, with `who` in its message, if the gradient is not finite.
    """
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    norm = clip_grad_norm(parameters, max_norm)
    if not math.isfinite(norm):
        raise TrainingError(f"the gradient norm of {who} is {norm}: lower its learning_rate")
    optimizer.step()
    return norm
