"""Annotators without a model: entropy, KL to the reference, hindsight, environments' rewards."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from harness.annotators.context import AnnotatorContext
from harness.annotators.hints import Hints
from harness.credit import TurnTable
from harness.model.logprobs import score_tokens
from harness.model.packing import Sample
from harness.types.arrays import Floats, Ints
from harness.types.errors import ConfigError
from harness.types.hyperparameters import number
from harness.types.rollout import Rollout, lengths_of


@dataclass(frozen=True, slots=True)
class NoSettings:
    """Settings of an annotator that has none."""


@dataclass(frozen=True, slots=True)
class AgainstReference:
    """Settings of an annotator that has none and compares with the reference policy."""

    needs_reference: ClassVar[bool] = True


class Measure:
    """An annotator that never learns."""

    def __init__(self, settings: Any, context: AnnotatorContext) -> None:
        self._settings, self._context = settings, context

    def learn(
        self, turns: TurnTable, rollouts: Sequence[Rollout], *, step: int, seed: int
    ) -> dict[str, float]:
        """Learn nothing."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """Return {}: there is no state."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Do nothing: there is no state."""


class Entropy(Measure):
    """Fills `entropy`: the policy's entropy in nats, averaged over a turn's tokens."""

    columns: ClassVar[tuple[str, ...]] = ("entropy",)

    def annotate(self, turns: TurnTable, rollouts: Sequence[Rollout]) -> TurnTable:
        """Return the table with its entropies."""
        _, entropy = self._context.scores(self._context.policy, rollouts)
        return replace(
            turns, entropy=self._context.as_rows(entropy, lengths_of(rollouts), mean=True)
        )


class Energy(Measure):
    """Fills `energy`: 1 - 2 pi + sum of p^2, summed over a turn's tokens.

    p is the distribution that a token was drawn from and pi its own probability: the number is the
    squared length of p less the token's unit vector, the gradient of log pi by the logits.
    """

    columns: ClassVar[tuple[str, ...]] = ("energy",)

    def annotate(self, turns: TurnTable, rollouts: Sequence[Rollout]) -> TurnTable:
        """Return the table with its energies."""
        context = self._context
        rows, temperature = context.sequences(rollouts), context.temperature or 1.0
        own, sharper = (
            np.concatenate([np.zeros(0), *(found.logprob for found in scored)])
            for scored in (
                score_tokens(context.policy, rows, t, context.max_tokens)
                for t in (temperature, temperature / 2)
            )
        )
        # At half the temperature a token has p^2 / sum of p^2.
        squares = np.exp(2 * own - sharper)
        energy = np.maximum(1.0 - 2.0 * np.exp(own) + squares, 0.0)
        return replace(turns, energy=context.as_rows(energy, lengths_of(rollouts)))


class ReferenceKL(Measure):
    """Fills `kl`: log pi - log pi_ref, summed over a turn's tokens (k1).

    pi_ref is the policy before training. The log-probabilities of pi are recomputed, so that `kl`
    is exactly 0 for equal policies.
    """

    columns: ClassVar[tuple[str, ...]] = ("kl",)

    def __init__(self, settings: AgainstReference, context: AnnotatorContext) -> None:
        super().__init__(settings, context)
        assert context.reference is not None
        self._reference = context.reference

    def annotate(self, turns: TurnTable, rollouts: Sequence[Rollout]) -> TurnTable:
        """Return the table with its divergences."""
        own, _ = self._context.scores(self._context.policy, rollouts)
        before, _ = self._context.scores(self._reference, rollouts)
        return replace(turns, kl=self._context.as_rows(own - before, lengths_of(rollouts)))


@dataclass(frozen=True, slots=True)
class HindsightSettings:
    """Settings of `Hindsight`. The hint's `{observation}` is replaced by the last observation."""

    temperature: float = 5.0  # divides the mean log-probability; more than 0
    hint: str = "\nIn the end: {observation}"  # text at the end of the prompt

    def __post_init__(self) -> None:
        number("hindsight.temperature", self.temperature, 1e-6)
        if not isinstance(self.hint, str) or self.hint.count("{observation}") != 1:
            raise ConfigError(f"hindsight.hint must say {{observation}} once, got {self.hint!r}")


class Hindsight(Measure):
    """Fills `hindsight`: the probability of the response given how the episode ended.

    pi_h = exp(mean log p(tokens | prompt, last observation of the rollout) / temperature), in (0,
    1]. The hint ends the prompt's last message; an observation that does not fit is cut at its end.
    Each turn is scored with its prompt alone, also in the context "transcript", so the cost grows
    with the square of an episode's length.
    Reference: HCAPO (Tan et al. 2026), as its users describe it; the wording is ours.
    """

    columns: ClassVar[tuple[str, ...]] = ("hindsight",)

    def __init__(self, settings: HindsightSettings, context: AnnotatorContext) -> None:
        super().__init__(settings, context)
        self._hints = Hints(context.policy, context.policy.max_length)

    def annotate(self, turns: TurnTable, rollouts: Sequence[Rollout]) -> TurnTable:
        """Return the table with its hindsight probabilities."""
        rows = [row for rollout in rollouts for row in self._rows(rollout)]
        context = self._context
        scored = score_tokens(context.policy, rows, context.temperature, context.max_tokens)
        logprob = np.concatenate([np.zeros(0), *(s.logprob for s in scored)])
        means = context.as_rows(logprob, lengths_of(rollouts), mean=True)
        return replace(turns, hindsight=np.exp(means / self._settings.temperature))

    def _rows(self, rollout: Rollout) -> Iterator[Sample]:
        encoder = self._context.policy.chat_encoder
        outcome = encoder.escape_special_tokens(rollout.turns[-1].next_observation)
        hint = self._settings.hint.replace("{observation}", outcome)
        for completion in (answer for turn in rollout.turns for answer in turn.answers):
            yield self._hints.row(completion, hint)


@dataclass(frozen=True, slots=True)
class EnvironmentRewardSettings:
    """Settings of `EnvironmentReward`."""

    outcome: float = 0.0  # part of a solved episode's last reward: 10 in Sokoban

    def __post_init__(self) -> None:
        number("environment_reward.outcome", self.outcome)


class EnvironmentReward(Measure):
    """Fills `process_reward`: the reward that the environment gave for each turn, unscaled.

    Reference: OPRL, Table 3, "w/ ground-truth PR": raw step rewards of VisualSokoban. The paper
    does not say whether they include the reward of a solved room.
    """

    columns: ClassVar[tuple[str, ...]] = ("process_reward",)

    def annotate(self, turns: TurnTable, rollouts: Sequence[Rollout]) -> TurnTable:
        """Return the table with its rewards."""
        reward = np.array([turn.reward for one in rollouts for turn in one.turns], dtype=float)
        ends = np.cumsum([len(one.turns) for one in rollouts]) - 1
        reward[ends[[one.success for one in rollouts]]] -= self._settings.outcome
        return replace(
            turns, process_reward=last_token_rows(self._context, reward, lengths_of(rollouts))
        )


class ResponseLength(Measure):
    """Fills `length`: the tokens of each response, also in every row of its tokens."""

    columns: ClassVar[tuple[str, ...]] = ("length",)

    def annotate(self, turns: TurnTable, rollouts: Sequence[Rollout]) -> TurnTable:
        """Return the table with its lengths."""
        lengths = lengths_of(rollouts)
        rows = np.repeat(lengths, lengths) if self._context.rows == "token" else lengths
        return replace(turns, length=rows.astype(np.float64))


class Subgoals(Measure):
    """Fills `process_reward`: the turn's gain over the best progress of its rollout so far.

    Progress is the solved share of the task's subgoals, 0 at the start and where unknown; a subgoal
    reached again counts once. With rows of tokens, a turn's last token has the gain.
    """

    columns: ClassVar[tuple[str, ...]] = ("process_reward",)

    def annotate(self, turns: TurnTable, rollouts: Sequence[Rollout]) -> TurnTable:
        """Return the table with the gains in progress."""
        gains = np.array([gain for one in rollouts for gain in _gains(one)], dtype=np.float64)
        return replace(
            turns, process_reward=last_token_rows(self._context, gains, lengths_of(rollouts))
        )


def _gains(rollout: Rollout) -> Iterator[float]:
    best = 0.0
    for turn in rollout.turns:
        gain = max(0.0, turn.progress - best) if math.isfinite(turn.progress) else 0.0
        best += gain
        yield gain


def last_token_rows(context: AnnotatorContext, of_turns: Floats, lengths: Ints) -> Floats:
    """Return numbers of turns as the table's rows: of tokens, the last one of a turn has it."""
    tokens = np.zeros(int(lengths.sum()))
    tokens[np.cumsum(lengths) - 1] = of_turns
    return context.as_rows(tokens, lengths)
