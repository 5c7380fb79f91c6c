"""Verbal reflection on a failed trial, for the prompts of the next one.

Reference: Shinn et al. 2023, arXiv:2303.11366: the agent reads its failed trial and writes what to
do differently; later prompts have the last 1 to 3 reflections. Departs from it: our templates have
no examples of reflections, and the environment decides whether a trial failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from agentgyms.core.outcome import cut_text
from harness import prompts
from harness.inference.completers import Completer, Sampling
from harness.prompts import truncation
from harness.prompts.answers import outside_thoughts
from harness.prompts.truncation import Cuts
from harness.types.errors import ContextOverflow
from harness.types.messages import Message, content_text
from harness.types.rollout import Rollout, Usage

LONGEST_REFLECTION: Final = 2000
"""Maximum characters of a reflection in later prompts."""

LONGEST_ANSWER: Final = 512
"""Maximum tokens of the model's answer, if the agent's limit is not lower."""

LONGEST_PROMPT: Final = 16000
"""Maximum characters of the reflection prompt, if `max_prompt` is not lower."""

_LONGEST_OBSERVATION: Final = 1500


@dataclass(frozen=True, slots=True)
class Reflection:
    """An agent's reflection on a trial."""

    prompt: str
    answer: str  # without thoughts; "" if there is none
    usage: Usage

    def as_json(self) -> dict[str, Any]:
        """Return it as recordings keep it."""
        tokens = [self.usage.prompt, self.usage.response]
        return {"prompt": self.prompt, "answer": self.answer, "tokens": tokens}


class Reflector:
    """Asks a model for its errors in a trial; the prompt has the trial's texts, but no images.

    Without a completer every reflection is empty. `max_prompt` limits the prompt's characters: the
    oldest turns are left out first, then the oldest reflections, then the middle of observations;
    the last turn stays.
    """

    def __init__(
        self,
        completer: Completer | None,
        sampling: Sampling,
        env_id: str,
        *,
        max_prompt: int | None = None,
    ) -> None:
        self.part = prompts.load_part("reflect", env_id)
        self._completer = completer
        self._sampling = replace(sampling, max_tokens=min(sampling.max_tokens, LONGEST_ANSWER))
        self._max_prompt = min(max_prompt or LONGEST_PROMPT, LONGEST_PROMPT)

    async def reflect(self, rollout: Rollout, reflections: Sequence[str], seed: int) -> Reflection:
        """Return the model's reflection on a failed trial, which has at least one turn.

        The limit of the prompt is halved until the prompt fits into the model's context. Raises
        `ModelUnavailable` if the model does not answer, `ContextOverflow` if the shortest prompt is
        too long.
        """
        limit = self._max_prompt
        while True:
            messages = self._messages(rollout, reflections, limit)
            prompt = content_text(messages[0]["content"])
            if self._completer is None:
                return Reflection(prompt, "", Usage())
            try:
                completion = await self._completer.complete(messages, self._sampling, seed)
            except ContextOverflow:
                limit = min(limit, len(prompt)) // 2
                continue
            answer = outside_thoughts(completion.text).strip()
            return Reflection(prompt, cut_text(answer, LONGEST_REFLECTION), completion.usage)

    def _messages(self, rollout: Rollout, reflections: Sequence[str], limit: int) -> list[Message]:
        def compose(cuts: Cuts) -> list[Message]:
            text = self.part.render(**_fields(rollout, reflections, cuts))
            return [{"role": "user", "content": text}]

        longest = min(max(len(text) for text in _observations(rollout)), _LONGEST_OBSERVATION)
        most = Cuts(len(rollout.turns) - 1, 0, len(reflections), longest)
        return truncation.fit(compose, most, limit)[0]


def _observations(rollout: Rollout) -> list[str]:
    return [turn.observation for turn in rollout.turns] + [rollout.turns[-1].next_observation]


def _fields(rollout: Rollout, reflections: Sequence[str], cuts: Cuts) -> dict[str, Any]:
    length = _LONGEST_OBSERVATION if cuts.observation is None else cuts.observation
    *seen, last = [truncation.cut_middle(text, length) for text in _observations(rollout)]
    turns = [
        {
            "number": number,
            "observation": observation,
            "action": truncation.cut_middle(turn.action, length),
            "feedback": turn.feedback,
        }
        for number, (turn, observation) in enumerate(zip(rollout.turns, seen, strict=True), 1)
    ]
    return {
        "goal": rollout.goal,
        "turns": turns[cuts.turns :],
        "missing": cuts.turns,
        "taken": len(turns),
        "last_observation": last,
        "ending": rollout.stop_reason.value,
        "reflections": list(reflections[cuts.reflections :]),
    }
