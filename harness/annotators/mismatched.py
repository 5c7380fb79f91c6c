"""Log-ratios of answers to other prompts: KTO's reference point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from harness.annotators.context import AnnotatorContext
from harness.annotators.measures import AgainstReference, Measure
from harness.credit import TurnTable
from harness.model.logprobs import score_tokens
from harness.model.packing import Sample, single_turn
from harness.model.policy import Policy
from harness.types.arrays import Floats
from harness.types.errors import ConfigError
from harness.types.rollout import Completion, Rollout


class MismatchedRatio(Measure):
    """Fills `value`: log pi - log pi_ref of another turn's answer to this turn's prompt.

    The answer is that of the turn half of the step's turns away, of another task if a step has
    several. A prompt that leaves no room for it loses its beginning; one with images keeps its
    answer.
    Reference: KTO (Ethayarajh et al. 2024), arXiv:2402.01306, section 4.1: the reference point is
    estimated from outputs that belong to other inputs of the batch.
    """

    columns: ClassVar[tuple[str, ...]] = ("value",)

    def __init__(self, settings: AgainstReference, context: AnnotatorContext) -> None:
        if context.rows != "turn":
            raise ConfigError(
                "the annotator 'mismatched_ratio' scores turns: set method.rows to 'turn'"
            )
        super().__init__(settings, context)
        assert context.reference is not None
        self._reference = context.reference

    def annotate(self, turns: TurnTable, rollouts: Sequence[Rollout]) -> TurnTable:
        """Return the table with its log-ratios."""
        answers = [turn.completion for rollout in rollouts for turn in rollout.turns]
        far = len(answers) // 2  # rollouts of a task stand together, so half-way is another task
        others = [*answers[far:], *answers[:far]]
        rows = [self._row(*both) for both in zip(answers, others, strict=True)]
        ratio = self._scores(self._context.policy, rows) - self._scores(self._reference, rows)
        return replace(turns, value=ratio)

    def _row(self, own: Completion, other: Completion) -> Sample:
        if own.images:
            return single_turn(own, 0.0)
        room = max(1, self._context.policy.max_length - len(other.response_ids))
        return single_turn(replace(other, prompt_ids=own.prompt_ids[-room:], images=()), 0.0)

    def _scores(self, policy: Policy, rows: Sequence[Sample]) -> Floats:
        own = self._context
        scored = score_tokens(policy, rows, own.temperature, own.max_tokens)
        return np.array([one.logprob.sum() for one in scored], dtype=np.float64)
