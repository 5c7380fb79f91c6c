"""Expert demonstrations: prompts, and the answers that the environment's expert gives to them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentgyms.core import experts
from harness.prompts import PromptStyle
from harness.rollouts.agent import Agent, choices_of
from harness.rollouts.collect import collect
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.episode import Episode, run_episode
from harness.rollouts.groups import CollectOptions
from harness.rollouts.views import Actor, Decision, EpisodeView
from harness.types.errors import ConfigError
from harness.types.messages import Message, texts_of
from harness.types.rollout import Completion, OnFinish, Rollout
from harness.types.task_draws import TaskDraw

_MAX_ACTIONS = 500
"""Largest number of earlier actions that random actions are drawn from."""


def expert_answer(style: PromptStyle, view: EpisodeView, kind: str) -> str:
    """Return an expert's answer in the format of a prompt style; the view needs `oracle=True`.

    Raises `ConfigError` if `info` has no `oracle`, or the style cannot write the action. Raises
    `BadOption` if the environment has no expert of this kind.
    """
    solution = view.info.get("oracle")
    if solution is None:
        raise ConfigError("info has no 'oracle': make the environment with oracle=True")
    return style.answer(experts.choose(json.loads(solution), kind), choices_of(view))


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A prompt (in a transcript: the chat so far) and the expert's answer to it."""

    messages: list[Message]
    answer: str


class Demonstrator:
    """Plays the expert's actions with random ones in between, and records demonstrations.

    A random action comes from this episode or an earlier one and may be illegal. It brings the
    episode into states that the expert would not have reached, so that the learner sees what the
    expert does there. Random actions are never targets. If actions cannot be listed, as for
    code, a random action is the beginning of an earlier expert answer; most of these fail.

    Episodes that it plays at once see each other's actions in an order that depends on time where
    environments do; `demonstrate` plays them so that the order of the tasks alone counts.

    Args:
        agent: The writer of prompts and parser of answers; its model is not called.
        kind: The name of the environment's expert; its actions are read from `info["oracle"]`.
        noise: The probability of a random action, in [0, 1).

    Attributes:
        demonstrations: The prompts and the expert's answers so far.
        texts: All observations, goals and actions seen, for the tokenizer of a tiny model.
    """

    def __init__(self, agent: Agent, kind: str, noise: float) -> None:
        """Raise `ConfigError` if `noise` is out of range."""
        if not 0 <= noise < 1:
            raise ConfigError(f"warmstart.noise must be in [0, 1), got {noise}")
        self._agent, self._kind, self._noise = agent, kind, noise
        self._actions: dict[str, None] = {}
        self.demonstrations: list[Demonstration] = []
        self.texts: dict[str, None] = {}

    async def act(self, view: EpisodeView, seed: int) -> Decision:
        """Return the expert's action, or with probability `noise` a random one."""
        rng = random.Random(seed)
        actions = choices_of(view)
        self.texts.update(dict.fromkeys([*actions, view.observation, view.info["goal"]]))
        messages = self._agent.messages(view)
        if rng.random() < self._noise:
            legal = rng.random() < 0.5 and actions
            action = rng.choice(actions if legal else [*self._actions, ""])
            if not actions:
                action = action[: rng.randrange(len(action) + 1)]
            answer = self._formatted(action, actions)
        else:
            solution = json.loads(view.info["oracle"])
            answer = expert_answer(self._agent.style, view, self._kind)
            action = self._agent.style.parse(answer, actions).action
            if solution.get("optimal_remaining", 0) >= 0:  # negative: no optimal action is known
                self.demonstrations.append(Demonstration(messages, answer))
        if len(self._actions) < _MAX_ACTIONS:
            self._actions.update(dict.fromkeys(actions or [action]))
        return Decision(action, Completion(answer))

    @property
    def learns_actions(self) -> bool:
        """Whether random actions depend on the episodes before."""
        return self._noise > 0 and len(self._actions) < _MAX_ACTIONS

    def begin(self) -> Demonstrator:
        """Return a demonstrator of one more episode, which knows the actions of those before."""
        own = Demonstrator(self._agent, self._kind, self._noise)
        own._actions.update(self._actions)
        return own

    def add(self, episode: Demonstrator) -> None:
        """Take over what a demonstrator of one more episode has recorded."""
        self.demonstrations += episode.demonstrations
        self.texts.update(episode.texts)
        if len(self._actions) < _MAX_ACTIONS:
            self._actions.update(episode._actions)

    def _formatted(self, action: str, actions: Sequence[str]) -> str:
        """Return an action in the style's format, or as it is if the style cannot write it."""
        try:
            return self._agent.style.answer(action, actions)
        except ConfigError:
            return action

    def corpus(self) -> Iterator[str]:
        """Yield the texts to train a tokenizer on: prompts, answers, observations, actions."""
        yield from self.texts
        for demonstration in self.demonstrations:
            # Earlier messages are in earlier demonstrations.
            yield from texts_of(demonstration.messages[-1:])
            yield demonstration.answer


async def demonstrate(
    demonstrator: Demonstrator,
    pool: EnvPool,
    draws: Sequence[TaskDraw],
    *,
    seed: int,
    on_finish: OnFinish,
) -> list[Rollout]:
    """Play all tasks with a demonstrator and return the rollouts, in the order of the tasks.

    The demonstrations and texts have that order too, whichever episodes fail. If `noise` is not 0,
    episodes are played one after another, because random actions depend on earlier episodes.
    """
    ended: dict[tuple[int, int], Demonstrator] = {}

    async def run(
        episode: Episode,
        actor: Actor,  # noqa: ARG001 (the demonstrator)
        *,
        seed: int,
        allow_initial_overflow: bool = False,
    ) -> Rollout:
        own = demonstrator.begin()
        rollout = await run_episode(
            episode, own, seed=seed, allow_initial_overflow=allow_initial_overflow
        )
        if not rollout.error:
            ended[episode.group, episode.member] = own
        return rollout

    options = CollectOptions(on_finish=on_finish, run=run)
    rollouts: list[Rollout] = []
    done = 0
    while done < len(draws):
        end = done + 1 if demonstrator.learns_actions else len(draws)
        rollouts += await collect(
            pool,
            draws[done:end],
            demonstrator,
            seed=seed,
            options=options,
            group_indices=range(done, end),
        )
        for place in sorted(ended):
            demonstrator.add(ended.pop(place))
        done = end
    return rollouts
