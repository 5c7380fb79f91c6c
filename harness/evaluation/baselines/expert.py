"""Actors without a model that use a model's prompts and parsing: expert and random."""

from __future__ import annotations

import random

from harness.rollouts.agent import Agent, choices_of
from harness.rollouts.demonstrations import expert_answer
from harness.rollouts.views import Decision, EpisodeView
from harness.types.rollout import Completion, Usage

_ANSWERED = Usage(calls=1)


class ExpertActor:
    """Plays the expert's actions (`info["oracle"]`) through an agent's prompts and parsing."""

    def __init__(self, agent: Agent, kind: str = "best") -> None:
        self._agent, self._kind = agent, kind

    async def act(self, view: EpisodeView, seed: int) -> Decision:
        """Return the expert's action; raises the errors of `expert_answer`."""
        self._agent.messages(view)
        answer = expert_answer(self._agent.style, view, self._kind)
        return self._agent.decide(view, Completion(answer, usage=_ANSWERED))


class RandomActor:
    """Plays legal actions uniformly at random through an agent's prompts and parsing.

    Open arguments are filled with the goal; if no action can be listed, the action is the goal.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    async def act(self, view: EpisodeView, seed: int) -> Decision:
        """Return a random action; raises `ConfigError` if the style cannot write it."""
        self._agent.messages(view)
        choices = choices_of(view)
        action = random.Random(seed).choice(choices or [view.info["goal"]])
        answer = self._agent.style.answer(action, choices)
        return self._agent.decide(view, Completion(answer, usage=_ANSWERED))
