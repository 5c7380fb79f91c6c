"""Reflection on a failed trial, in words, for the next one.

Reference: Shinn et al. 2023, arXiv:2303.11366: the agent is told how its trial went and writes what
to do otherwise; the last 1 to 3 reflections stand in the prompts of later trials.
Departs from it: templates of our own, without worked examples of reflections, and whether a trial
failed is the environment's verdict, not a guess from repeated actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from agentgyms.outcome import cut_text
from harness import budget, prompts
from harness.budget import Cuts
from harness.completers import Completer, Message, Sampling
from harness.errors import ContextOverflow
from harness.parsing import outside_thoughts
from harness.rollout import Rollout, Usage

LONGEST_REFLECTION: Final = 2000
"""Most characters of a reflection in later prompts."""

LONGEST_ANSWER: Final = 512
"""Most tokens of the model's answer, if the agent's own limit is not lower."""

LONGEST_PROMPT: Final = 16000
"""Most characters of the prompt that asks for a reflection, if `max_prompt` is not lower."""

_LONGEST_OBSERVATION: Final = 1500


@dataclass(frozen=True, slots=True)
class Reflection:
    """What an agent thought of a trial.

    Attributes:
        prompt: What it was asked.
        answer: Without the model's thoughts, at most `LONGEST_REFLECTION` characters; "" if there
            is nobody to ask or nothing was said.
        usage: Tokens.
    """

    prompt: str
    answer: str
    usage: Usage


class Reflector:
    """Asks a model what went wrong in a trial.

    Images are not shown: a trial is told by its texts and actions.

    Args:
        completer: The model; None answers nothing.
        sampling: The agent's.
        env_id: Whose template `reflect` is taken.
        max_prompt: Most characters of a prompt; None takes `LONGEST_PROMPT`. Oldest turns are left
            out first, then oldest reflections, then the middle of observations, as in
            `harness.agent`; the last turn stays.
    """

    def __init__(
        self,
        completer: Completer | None,
        sampling: Sampling,
        env_id: str,
        *,
        max_prompt: int | None = None,
    ) -> None:
        """Load the template."""
        self.part = prompts.load_part("reflect", env_id)
        self._completer = completer
        self._sampling = replace(sampling, max_tokens=min(sampling.max_tokens, LONGEST_ANSWER))
        self._max_prompt = min(max_prompt or LONGEST_PROMPT, LONGEST_PROMPT)

    async def reflect(self, rollout: Rollout, reflections: Sequence[str], seed: int) -> Reflection:
        """Return what the model says about a failed trial.

        A prompt that is too long for the model is halved until it fits.

        Args:
            rollout: The trial; at least one turn.
            reflections: Those that its prompts showed, oldest first.
            seed: Of the answer.

        Raises:
            ModelUnavailable: There is no answer; nothing is known about the task then.
            ContextOverflow: The shortest prompt does not fit.
        """
        limit = self._max_prompt
        while True:
            messages = self._messages(rollout, reflections, limit)
            prompt = budget.text_of(messages[0]["content"])
            if self._completer is None:
                return Reflection(prompt, "", Usage())
            try:
                said = await self._completer.complete(messages, self._sampling, seed)
            except ContextOverflow:
                limit = min(limit, len(prompt)) // 2
                continue
            answer = outside_thoughts(said.text).strip()
            return Reflection(prompt, cut_text(answer, LONGEST_REFLECTION), said.usage)

    def _messages(self, rollout: Rollout, reflections: Sequence[str], limit: int) -> list[Message]:
        def compose(cuts: Cuts) -> list[Message]:
            text = self.part.render(**_fields(rollout, reflections, cuts))
            return [{"role": "user", "content": text}]

        longest = min(max(len(text) for text in _observations(rollout)), _LONGEST_OBSERVATION)
        most = Cuts(len(rollout.turns) - 1, 0, len(reflections), longest)
        return budget.fit(compose, most, limit)[0]


def _observations(rollout: Rollout) -> list[str]:
    """Return what was seen before each turn and after the last one."""
    return [turn.observation for turn in rollout.turns] + [rollout.turns[-1].next_observation]


def _fields(rollout: Rollout, reflections: Sequence[str], cuts: Cuts) -> dict[str, Any]:
    """Return what the template sees."""
    length = _LONGEST_OBSERVATION if cuts.observation is None else cuts.observation
    *seen, last = [budget.cut_middle(text, length) for text in _observations(rollout)]
    turns = [
        {
            "number": number,
            "observation": observation,
            "action": budget.cut_middle(turn.action, length),
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
