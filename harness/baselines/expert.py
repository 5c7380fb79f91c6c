"""Actors without a model, asked and read like one: the environment's expert, and a random one."""

from __future__ import annotations

import json
import random

from agentgyms import experts
from harness.agent import Agent, Decision, EpisodeView, choices_of
from harness.errors import ConfigError
from harness.prompts import PromptStyle
from harness.rollout import Completion, Usage

_ANSWERED = Usage(calls=1)


def expert_answer(style: PromptStyle, view: EpisodeView, kind: str) -> str:
    """Return the answer of an expert, as the style writes it.

    Args:
        style: How answers are written.
        view: Of an environment made with `oracle=True`.
        kind: Which of its experts.

    Raises:
        ConfigError: The environment tells no solutions, or the style cannot write the action.
        BadOption: It has no expert of this kind.
    """
    told = view.info.get("oracle")
    if told is None:
        raise ConfigError("the environment tells no solutions: make it with oracle=True")
    return style.answer(experts.choose(json.loads(told), kind), choices_of(view))


class ExpertActor:
    """Answers as an expert of the environment would; prompts and parsing are the agent's.

    Args:
        agent: Whose prompts are written, and by whose style answers are written and read. Its
            model is not asked.
        kind: Which expert; its actions are read from `info["oracle"]`.
    """

    def __init__(self, agent: Agent, kind: str = "best") -> None:
        """Keep both."""
        self._agent, self._kind = agent, kind

    async def act(self, view: EpisodeView, seed: int) -> Decision:
        """Return the expert's action; see `expert_answer` for what is raised."""
        self._agent.messages(view)
        answer = expert_answer(self._agent.style, view, self._kind)
        return self._agent.decide(view, Completion(answer, usage=_ANSWERED))


class RandomActor:
    """Answers with any action that is legal now, each as likely; open texts get the goal.

    Where no action can be listed the answer is the goal itself.

    Args:
        agent: Whose prompts are written, and by whose style answers are written and read. Its
            model is not asked.
    """

    def __init__(self, agent: Agent) -> None:
        """Keep the agent."""
        self._agent = agent

    async def act(self, view: EpisodeView, seed: int) -> Decision:
        """Return the action that `seed` draws.

        Raises:
            ConfigError: The style cannot write it.
        """
        self._agent.messages(view)
        choices = choices_of(view)
        action = random.Random(seed).choice(choices or [view.info["goal"]])
        answer = self._agent.style.answer(action, choices)
        return self._agent.decide(view, Completion(answer, usage=_ANSWERED))
