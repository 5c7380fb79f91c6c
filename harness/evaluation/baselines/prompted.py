"""Builds the agent of a configuration: prompted or trained, with reflection or with a search."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, TypeVar

from harness import prompts
from harness.config import EvaluationConfig
from harness.evaluation.baselines.reflexion import Reflection, Reflector
from harness.evaluation.baselines.searching import BestOf, Mcts, Searcher
from harness.inference.completers import Completer, Sampling
from harness.prompts.truncation import Preamble
from harness.rollouts.agent import SUMMARY_TOKENS, Agent, choices_of
from harness.rollouts.demonstrations import expert_answer
from harness.rollouts.search.budget import Budget, Metered
from harness.rollouts.search.policies import (
    Proposals,
    SampledProposals,
    StateValue,
    UniformProposals,
    rollout_value,
    solver_value,
)
from harness.rollouts.views import Actor, Decision, EpisodeView
from harness.types.errors import ConfigError
from harness.types.messages import Message
from harness.types.rollout import Completion, Rollout, Usage

_T = TypeVar("_T")


class Baseline:
    """The agent of a resolved configuration; raises `ConfigError` for an unknown prompt style.

    Direct, ReAct and trained policies differ only in style, context and window. Reflexion also
    reflects on failed trials, at most `trials` times; best-of-n and mcts have a `searcher`.
    `prompt_versions` has the hash of each used template, by its name. `completer` is None for the
    backends `expert` and `random`.
    """

    def __init__(
        self, config: EvaluationConfig, completer: Completer | None, examples: Sequence[str] = ()
    ) -> None:
        agent, sampling = config.agent, config.sampling
        self._model, self._agent, self._env_id = config.model, agent, config.env.id
        self._completer, self._examples = completer, tuple(examples)
        self._style = prompts.load(
            _required(agent.style, "agent.style"),
            config.env.id,
            agent.tool_format,
            config.env.kwargs,
        )
        self._sampling = Sampling(
            _required(sampling.temperature, "sampling.temperature"),
            _required(sampling.max_tokens, "sampling.max_tokens"),
            sampling.top_p,
            agent.max_thought_tokens,
        )
        self.trials = _required(agent.trials, "agent.trials")
        self._reflector = None
        if _required(agent.kind, "agent.kind") == "reflexion":
            self._reflector = Reflector(
                completer, self._sampling, config.env.id, max_prompt=agent.max_prompt
            )
        if completer is None and config.model.backend not in ("expert", "random"):
            raise ConfigError(f"the backend {config.model.backend!r} needs a model, got none")
        self.searcher = self._searcher(config)
        names = ["episode", "examples"] if self._examples else []
        names += ["memory", "reflect"] if self._reflector else []
        names += ["summarise", "summary"] if agent.context == "summary" else []
        names += ["scratchpad"] if agent.scratchpad else []
        parts = [prompts.load_part(name, self._env_id) for name in names]
        versions = {part.name: part.version for part in parts}
        self.prompt_versions = {self._style.name: self._style.version, **versions}

    def actor(self, reflections: Sequence[str] = ()) -> Actor:
        """Return a trial's actor, shown the last `agent.memory` of `reflections` (oldest first)."""
        return self._actor(self._agent_of(self._completer, reflections))

    def _agent_of(self, completer: Completer | None, reflections: Sequence[str] = ()) -> Agent:
        return Agent(
            completer or _NoModel(),
            self._style,
            self._sampling,
            _required(self._agent.window, "agent.window"),
            _required(self._agent.context, "agent.context"),
            preamble=self._preamble(reflections),
            max_prompt=self._agent.max_prompt,
            thoughts=self._agent.thoughts or "keep",
            summary_tokens=self._agent.summary_tokens or SUMMARY_TOKENS,
            scratchpad=self._agent.scratchpad or 0,
            max_observation=self._agent.max_observation,
            tokens=getattr(self._completer, "chat_tokenizer", None),  # of a model in this process
        )

    def _actor(self, agent: Agent) -> Actor:
        if self._model.backend == "expert":
            return ExpertActor(agent, self._model.expert)
        return RandomActor(agent) if self._model.backend == "random" else agent

    def _searcher(self, config: EvaluationConfig) -> Searcher | None:
        search = config.search
        if self._agent.kind == "best-of-n":
            return BestOf(search)
        if self._agent.kind != "mcts":
            return None
        if self._style.shows_image:
            raise ConfigError(
                f"agent.kind is 'mcts', which is for texts, and the style {self._style.name!r} "
                "shows images: choose another agent.style"
            )

        def parts(budget: Budget) -> tuple[Proposals, StateValue]:
            paid = None if self._completer is None else Metered(self._completer, budget)
            agent = self._agent_of(paid)
            proposals = SampledProposals(agent, search.width) if paid else UniformProposals(agent)
            if search.value == "solver":
                return proposals, solver_value(search.discount)
            return proposals, rollout_value(self._actor(agent), budget, search.discount)

        return Mcts(search, parts)

    def preamble(self, reflections: Sequence[str] = ()) -> str:
        """Return the text before the prompts of a trial, without any length limit."""
        return self._preamble(reflections).text()

    async def reflect(self, rollout: Rollout, reflections: Sequence[str], seed: int) -> Reflection:
        """Return the agent's reflection on a failed trial; `reflections` as for `actor`.

        Raises `ModelUnavailable` if the model does not answer (the task's outcome is unknown),
        `ContextOverflow` if the shortest prompt is too long, `ConfigError` if this agent does not
        reflect.
        """
        if self._reflector is None:
            raise ConfigError(f"the agent {self._agent.kind!r} does not reflect")
        return await self._reflector.reflect(rollout, self._remembered(reflections), seed)

    def _remembered(self, reflections: Sequence[str]) -> tuple[str, ...]:
        given = [reflection for reflection in reflections if reflection]
        return tuple(given[max(0, len(given) - self._agent.memory) :])

    def _preamble(self, reflections: Sequence[str]) -> Preamble:
        return Preamble(self._env_id, self._examples, self._remembered(reflections))


def _required(value: _T | None, key: str) -> _T:
    if value is None:
        raise ConfigError(
            f"{key} is not set: resolve the configuration with harness.evaluation.defaults.resolve"
        )
    return value


class _NoModel:
    async def complete(self, messages: Sequence[Message], sampling: Sampling, seed: int) -> Any:
        raise AssertionError("the expert and the random actor call no model")


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
