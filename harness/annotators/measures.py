"""Annotators that only measure: entropy, divergence from the reference policy, hindsight."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from harness.annotators.surroundings import Surroundings, lengths_of
from harness.credit import TurnTable
from harness.credit.arguments import number
from harness.errors import ConfigError
from harness.packing import Sample
from harness.policy import Policy
from harness.rollout import Rollout, Turn
from harness.scoring import score


class Measure:
    """An annotator that never learns."""

    def learn(
        self, turns: TurnTable, rollouts: Sequence[Rollout], *, step: int, seed: int
    ) -> dict[str, float]:
        """Learn nothing."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """Return nothing: nothing changes."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take nothing."""


@dataclass(frozen=True, slots=True)
class EntropySettings:
    """The entropy has nothing to set."""

    needs_reference: ClassVar[bool] = False


class Entropy(Measure):
    """Fills `entropy`: that of the policy's distribution, in nats, mean over a turn's tokens."""

    columns: ClassVar[tuple[str, ...]] = ("entropy",)

    def __init__(self, settings: EntropySettings, around: Surroundings) -> None:
        """Compute nothing yet."""
        self._around = around

    def annotate(self, turns: TurnTable, rollouts: Sequence[Rollout]) -> TurnTable:
        """Return the table with its entropies."""
        _, entropy = self._around.scores(self._around.policy, rollouts)
        return replace(
            turns, entropy=self._around.as_rows(entropy, lengths_of(rollouts), mean=True)
        )


@dataclass(frozen=True, slots=True)
class ReferenceKLSettings:
    """The divergence has nothing to set."""

    needs_reference: ClassVar[bool] = True


class ReferenceKL(Measure):
    """Fills `kl`: log pi - log pi_ref, summed over a turn's tokens (k1), pi_ref as training began.

    pi is scored afresh, not taken as recorded, so that it is 0 to the last bit where both policies
    are equal, however generation rounds.
    """

    columns: ClassVar[tuple[str, ...]] = ("kl",)

    def __init__(self, settings: ReferenceKLSettings, around: Surroundings) -> None:
        """Take note of both policies."""
        assert around.reference is not None
        self._around, self._reference = around, around.reference

    def annotate(self, turns: TurnTable, rollouts: Sequence[Rollout]) -> TurnTable:
        """Return the table with its divergences."""
        own, _ = self._around.scores(self._around.policy, rollouts)
        before, _ = self._around.scores(self._reference, rollouts)
        return replace(turns, kl=self._around.as_rows(own - before, lengths_of(rollouts)))


@dataclass(frozen=True, slots=True)
class HindsightSettings:
    """How the outcome is told.

    Attributes:
        temperature: Divides the mean log-probability; more than 0.
        hint: Ends the prompt; `{observation}` stands for what was observed last.
    """

    temperature: float = 5.0
    hint: str = "\nIn the end: {observation}"
    needs_reference: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Raise `ConfigError` if the temperature is out of range or the hint tells nothing."""
        number("hindsight.temperature", self.temperature, 1e-6)
        if not isinstance(self.hint, str) or self.hint.count("{observation}") != 1:
            raise ConfigError(f"hindsight.hint must say {{observation}} once, got {self.hint!r}")


class Hindsight(Measure):
    """Fills `hindsight`: how likely the response is to whoever knows how the episode ended.

    pi_h = exp(mean log p(tokens | prompt, last observation of the rollout) / temperature), in
    (0, 1]. The hint is put at the end of the prompt's last message; an observation that does not
    fit into the model's context is cut at its end. In the context "transcript", too, each turn is
    scored with a prompt of its own, so its cost grows with the square of an episode's length.
    Reference: HCAPO (Tan et al. 2026), as its users describe it; the wording is ours.
    """

    columns: ClassVar[tuple[str, ...]] = ("hindsight",)

    def __init__(self, settings: HindsightSettings, around: Surroundings) -> None:
        """Learn how the chat template ends a prompt."""
        self._settings, self._around = settings, around
        self._ending = _ending(around.policy)

    def annotate(self, turns: TurnTable, rollouts: Sequence[Rollout]) -> TurnTable:
        """Return the table with its hindsight probabilities."""
        rows = [row for rollout in rollouts for row in self._rows(rollout)]
        around = self._around
        told = score(around.policy, rows, around.temperature, around.max_tokens)
        logprob = np.concatenate([np.zeros(0), *(t.logprob for t in told)])
        means = around.as_rows(logprob, lengths_of(rollouts), mean=True)
        return replace(turns, hindsight=np.exp(means / self._settings.temperature))

    def _rows(self, rollout: Rollout) -> Iterator[Sample]:
        policy = self._around.policy
        seen = policy.chats.harmless(rollout.turns[-1].next_observation)
        told = policy.encode(self._settings.hint.replace("{observation}", seen))
        for turn in rollout.turns:
            said = turn.completion
            room = policy.max_length - len(said.prompt_ids) - len(said.response_ids)
            prompt = self._with_hint(turn, told[: max(0, room)])
            yield Sample(prompt, said.response_ids, said.logprobs, 0.0, said.images)

    def _with_hint(self, turn: Turn, hint: tuple[int, ...]) -> tuple[int, ...]:
        prompt, size = turn.completion.prompt_ids, len(self._ending)
        if prompt[len(prompt) - size :] != self._ending:
            raise ConfigError(
                "a prompt does not end as the chat template ends a user's message, so no hint can "
                "be put into it: use another policy.model"
            )
        return prompt[: len(prompt) - size] + hint + self._ending


def _ending(policy: Policy) -> tuple[int, ...]:
    """Return the tokens between a user's last word and the answer.

    Raises:
        ConfigError: The template does not show the message as it is.
    """
    mark = "outcome"
    chat = [{"role": "user", "content": mark}]
    text = policy.tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    _, found, ending = str(text).rpartition(mark)
    if not found:
        raise ConfigError("the chat template does not show a message's text as it is")
    return policy.encode(ending)
