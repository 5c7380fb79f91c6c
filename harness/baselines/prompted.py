"""Agents that a configuration describes: direct, ReAct, Reflexion, a trained policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from harness import prompts
from harness.agent import Actor, Agent
from harness.baselines.expert import ExpertActor, RandomActor
from harness.baselines.reflexion import Reflection, Reflector
from harness.completers import Completer, Message, Sampling
from harness.errors import ConfigError
from harness.evaluation.config import EvaluationConfig
from harness.preamble import Preamble
from harness.rollout import Rollout

_T = TypeVar("_T")


class Baseline:
    """An agent as a configuration describes it.

    Direct, ReAct and trained policies differ in style, context and window alone, which the resolved
    configuration names. Reflexion is one of these that reflects on failed trials.

    Args:
        config: Resolved: agent, style, context, window, trials and sampling are set.
        completer: The model; None for the backends `expert` and `random`.
        examples: Worked examples as text; see `harness.baselines.examples`.

    Attributes:
        trials: Most attempts at a task.
        prompt_versions: Hash of each template that is used, by its name.

    Raises:
        ConfigError: The configuration is not resolved, or names no such style.
    """

    def __init__(
        self, config: EvaluationConfig, completer: Completer | None, examples: Sequence[str]
    ) -> None:
        """Load the templates."""
        agent, sampling = config.agent, config.sampling
        self._model, self._agent, self._env_id = config.model, agent, config.env.id
        self._completer, self._examples = completer, tuple(examples)
        self._style = prompts.load(_set(agent.style, "agent.style"), config.env.id)
        self._sampling = Sampling(
            _set(sampling.temperature, "sampling.temperature"),
            _set(sampling.max_tokens, "sampling.max_tokens"),
            sampling.top_p,
        )
        self.trials = _set(agent.trials, "agent.trials")
        self._reflector = None
        if _set(agent.kind, "agent.kind") == "reflexion":
            self._reflector = Reflector(
                completer, self._sampling, config.env.id, max_prompt=agent.max_prompt
            )
        if completer is None and config.model.backend not in ("expert", "random"):
            raise ConfigError(f"the backend {config.model.backend!r} needs a model, got none")
        self.prompt_versions = self._versions()

    def actor(self, reflections: Sequence[str] = ()) -> Actor:
        """Return who plays a trial.

        Args:
            reflections: On the task's earlier trials, oldest first; the last `agent.memory` of them
                stand before the prompt.
        """
        agent = Agent(
            self._completer or _Nobody(),
            self._style,
            self._sampling,
            _set(self._agent.window, "agent.window"),
            _set(self._agent.context, "agent.context"),
            preamble=self._preamble(reflections),
            max_prompt=self._agent.max_prompt,
        )
        if self._model.backend == "expert":
            return ExpertActor(agent, self._model.expert)
        return RandomActor(agent) if self._model.backend == "random" else agent

    def preamble(self, reflections: Sequence[str] = ()) -> str:
        """Return what stands before the prompts of a trial, where no limit cuts it."""
        return self._preamble(reflections).text()

    async def reflect(self, rollout: Rollout, reflections: Sequence[str], seed: int) -> Reflection:
        """Return the agent's reflection on a failed trial.

        Args:
            rollout: The trial.
            reflections: On the trials before it, oldest first; those in memory are shown.
            seed: Of the answer.

        Raises:
            ModelUnavailable: There is no answer: the task's outcome stays unknown.
            ContextOverflow: The shortest prompt does not fit into the model's context.
            ConfigError: This agent does not reflect.
        """
        if self._reflector is None:
            raise ConfigError(f"the agent {self._agent.kind!r} does not reflect")
        return await self._reflector.reflect(rollout, self._remembered(reflections), seed)

    def _remembered(self, reflections: Sequence[str]) -> tuple[str, ...]:
        said = [reflection for reflection in reflections if reflection]
        return tuple(said[max(0, len(said) - self._agent.memory) :])

    def _preamble(self, reflections: Sequence[str]) -> Preamble:
        return Preamble(self._env_id, self._examples, self._remembered(reflections))

    def _versions(self) -> dict[str, str]:
        names = ["episode", "examples"] if self._examples else []
        names += ["memory", "reflect"] if self._reflector else []
        parts = [prompts.load_part(name, self._env_id) for name in names]
        return {self._style.name: self._style.version, **{p.name: p.version for p in parts}}


def make(
    config: EvaluationConfig, completer: Completer | None, examples: Sequence[str] = ()
) -> Baseline:
    """Return the agent that a resolved configuration describes; see `Baseline`."""
    return Baseline(config, completer, examples)


def _set(value: _T | None, key: str) -> _T:
    if value is None:
        raise ConfigError(
            f"{key} is not set: resolve the configuration with harness.evaluation.defaults.resolve"
        )
    return value


class _Nobody:
    """Stands where a model would, for actors that ask none."""

    async def complete(self, messages: Sequence[Message], sampling: Sampling, seed: int) -> Any:
        raise AssertionError("the expert and the random actor ask no model")
