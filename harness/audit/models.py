"""Measures the truth of any model that can be evaluated, from the settings of an evaluation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harness.audit.policies import AgentPolicy, AuditPolicy, NoisyExpert
from harness.audit.truth import TruthOptions, measure
from harness.audit.truth_sets import TruthSet
from harness.config import SEARCHES, EvaluationConfig
from harness.credit.table import TurnTable
from harness.evaluation import defaults
from harness.evaluation.baselines.prompted import Baseline
from harness.evaluation.evaluate import choose
from harness.evaluation.open_model import Model, open_model
from harness.evaluation.play_units import describe_pool, pool_arguments
from harness.rollouts.agent import Agent
from harness.rollouts.env_pool import EnvPool
from harness.types.errors import ConfigError
from harness.types.rollout import Rollout
from harness.types.task_draws import TaskDraw, seed_of

if TYPE_CHECKING:
    from harness.model.policy import Policy


@dataclass(frozen=True, slots=True)
class Plan:
    """The size of an audit: groups, repeats, noise and continuations."""

    group_size: int = 8  # rollouts
    repeats: int = 1  # fresh groups of each task
    noise: float = 0.5  # probability of a random action of the expert
    seed: int = 0
    options: TruthOptions = TruthOptions()  # noqa: RUF009 (frozen)
    process_reward: Path | None = None  # training run whose reward model scores turns

    def __post_init__(self) -> None:
        if self.group_size < 2:
            raise ConfigError(f"--group-size must be at least 2, got {self.group_size}")
        if self.repeats < 1:
            raise ConfigError(f"--repeats must be at least 1, got {self.repeats}")
        if self.seed < 0:
            raise ConfigError(f"--seed must be 0 or more, got {self.seed}")

    @property
    def rollouts(self) -> int:
        """Rollouts of a task."""
        return self.group_size * self.repeats


async def measure_model(
    config: EvaluationConfig, plan: Plan, on_group: Callable[[int, int], object] = lambda *_: None
) -> TruthSet:
    """Play groups with a model, or with the noisy expert, and measure the truth of their turns.

    `config` has environment, split, number of tasks, model and agent, as for an evaluation.
    `on_group` is called after each group with the groups played so far and their total. Raises
    `AgentGymsError` if the model or the environment cannot be opened, or every episode was lost.
    """
    if config.agent.kind in ("reflexion", *SEARCHES):
        raise ConfigError("an audit plays each episode once: give --agent direct or react")
    async with AsyncExitStack() as stack:
        model = await open_model(config)
        stack.push_async_callback(model.close)
        _check_reward_model(plan, model)
        config = defaults.resolve(config, model.trained)
        max_live = max(config.run.concurrency, plan.rollouts)
        pool = EnvPool(config.env.id, plan.rollouts, max_live, **pool_arguments(config))
        stack.callback(pool.close)
        tasks, about, _ = await describe_pool(pool)
        chosen = choose(tasks, config.run.tasks)
        draws = [TaskDraw(task, seed_of(plan.seed, i)) for i, task in enumerate(chosen)]
        policy, played = _policy(config, model, plan, pool.remote), list[Rollout]()

        def finished(rollout: Rollout) -> None:
            played.append(rollout)
            on_group(len({one.group for one in played}), len(draws))

        truth, rollouts = await measure(
            pool, draws, policy, plan.options, seed=plan.seed, on_finish=finished
        )
        sketch, gradient = _sketch(config, model, rollouts)
        scored = _scored(truth.turns, config, model, plan, rollouts)
        truth = replace(truth, turns=scored, sketch=sketch)
        return TruthSet(
            truth,
            tuple(dict.fromkeys(rollout.task_id for rollout in rollouts)),
            {
                "environment": config.env.id,
                "arguments": {key: str(value) for key, value in config.env.kwargs.items()},
                "split": config.env.split,
                "data": pool.data_source,
                "data_version": about["data_version"],
                "max_turns": about["max_turns"],
                "policy": _described(model, plan),
                "group_size": plan.group_size,
                "repeats": plan.repeats,
                "gradient": gradient,
                **({"process_reward": str(plan.process_reward)} if plan.process_reward else {}),
                "seed": plan.seed,
                "success": sum(rollout.success for rollout in rollouts) / len(rollouts),
            },
        )


def _check_reward_model(plan: Plan, model: Model) -> None:
    if plan.process_reward is None:
        return
    from harness.audit import reward_models

    backend = model.identity.get("backend")
    if backend != "hf":
        raise ConfigError(
            f"--process-reward compares with a model of this process, and the backend is "
            f"{backend}: leave it out, or give a --model that runs here"
        )
    reward_models.settings(plan.process_reward)


def _policy(config: EvaluationConfig, model: Model, plan: Plan, is_remote: bool) -> AuditPolicy:
    """Return the audit's policy; a model of this process answers all open continuations at once."""
    if model.completer is None:
        random = config.model.backend == "random"
        return NoisyExpert(1.0 if random else plan.noise, config.model.expert)
    completer, max_live = model.completer, max(config.run.concurrency, plan.rollouts)
    if model.identity.get("backend") == "hf":
        from harness.inference.completers.hf import HFCompleter
        from harness.inference.completers.repeated_prompts import RepeatedPrompts

        assert isinstance(completer, HFCompleter)
        completer = RepeatedPrompts(completer)
        max_live = max_live if is_remote else config.model.max_batch
    actor = Baseline(config, completer).actor()
    assert isinstance(actor, Agent)
    return AgentPolicy(actor, max_live)


def _sketch(
    config: EvaluationConfig, model: Model, rollouts: Sequence[Rollout]
) -> tuple[NDArray[np.float16] | None, str]:
    """Return the sketches of the turns' gradients, and a phrase for the report."""
    if model.completer is None:
        return None, "of a softmax over each state's actions"
    if model.identity.get("backend") != "hf":
        return None, f"left out: it needs the backend hf, this is {model.identity['backend']}"
    from harness.audit.parameter_gradients import Projection, sketches
    from harness.model import adapters

    policy = _policy_of(model)
    if policy.is_adapted:
        adapters.train_only_adapters(policy.model)
    else:
        policy.model.requires_grad_(True)  # rounded weights are frozen
    projection = Projection(policy)
    found = sketches(policy, rollouts, projection, config.sampling.temperature or 1.0)
    return found, f"of {projection.parameters:,} parameters in {projection.size:,} dimensions"


def _scored(
    turns: TurnTable,
    config: EvaluationConfig,
    model: Model,
    plan: Plan,
    rollouts: Sequence[Rollout],
) -> TurnTable:
    """Return the turns with the scores of a run's reward model, if one is to give them."""
    if plan.process_reward is None:
        return turns
    from harness.audit.reward_models import process_rewards

    temperature = config.sampling.temperature or 1.0
    found = process_rewards(plan.process_reward, _policy_of(model), rollouts, temperature)
    return replace(turns, process_reward=found)


def _policy_of(model: Model) -> Policy:
    from harness.inference.completers.hf import HFCompleter

    assert isinstance(model.completer, HFCompleter)
    return model.completer.policy


def _described(model: Model, plan: Plan) -> dict[str, Any]:
    own = {"noise": plan.noise} if model.identity.get("backend") == "expert" else {}
    return {**model.identity, **own}
