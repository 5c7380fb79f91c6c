"""Plays the rollouts of a training step: chooses the actor and the tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness import annotators
from harness.annotators import state_values
from harness.config import Config, RolloutConfig, methods
from harness.credit.table import INVALID_FEEDBACK
from harness.distributed.process_group import SINGLE_PROCESS, ProcessGroup
from harness.inference.completers import Completer
from harness.inference.completers.hf import HFCompleter
from harness.inference.completers.repeated_prompts import RepeatedPrompts
from harness.model.policy import Policy
from harness.rollouts.branches import Branches, cost
from harness.rollouts.build import make_agent, make_pool
from harness.rollouts.collect import collect, collect_distributed
from harness.rollouts.continuations import AgentContinuations, Cost, StateReturns
from harness.rollouts.groups import CollectOptions
from harness.rollouts.task_sampling.curriculum import Curriculum
from harness.rollouts.task_sampling.dynamic_sampling import collect_informative, returns_differ
from harness.rollouts.views import Actor
from harness.training.players.demonstration_actor import DemonstrationActor
from harness.types.errors import TrainingError
from harness.types.rollout import Completion, OnFinish, Rollout, StopReason
from harness.types.task_draws import TaskDraw, TaskSampler, seed_of

_ROLLOUTS = 1
"""Stream of random numbers; the trainer uses the others."""


@dataclass(frozen=True, slots=True)
class StepRollouts:
    """The rollouts of a step, without errors and each with a turn, and figures for the log."""

    rollouts: list[Rollout]
    figures: dict[str, float] = field(default_factory=dict)


class Player:
    """Plays the rollouts of training steps, with the groups shared among the processes."""

    def __init__(
        self,
        config: Config,
        policy: Policy,
        # The generator of answers; if the method learns from rollouts of the initial policy, it has
        # that policy's weights.
        completer: Completer,
        # A function that runs a coroutine to its end.
        run: Callable[[Coroutine[Any, Any, Any]], Any] = asyncio.run,
        processes: ProcessGroup = SINGLE_PROCESS,
    ) -> None:
        self._run, self._processes = run, processes
        self._config, self._policy = config, policy
        self._kind = methods.get(config.method.name).actor
        self._continuations = state_values.wanted(config.method.annotators)
        tokens = policy.chat_tokenizer
        self._agent = make_agent(config, completer, config.agent.temperature, tokens)
        readers = config.method.annotators.items()
        wanted = self._kind == "expert" or any(annotators.needs_oracle(*item) for item in readers)
        oracle = {"oracle": True} if wanted else {}
        self._pool = make_pool(config, config.env.train_split, config.rollout.group_size, **oracle)
        tasks, course = self._pool.tasks(), config.rollout.curriculum
        self.curriculum = Curriculum(tasks, config.run.seed, course) if course.by else None
        self.parts = {} if self.curriculum is None else {"curriculum": self.curriculum}
        self._sampler = self.curriculum or TaskSampler(tasks, config.run.seed)

    def open(self) -> None:
        """Do nothing: nobody waits for this player."""

    def play(self, step: int, on_finish: OnFinish = lambda _: None) -> StepRollouts:
        """Return a step's rollouts, or raise `TrainingError`; `on_finish` gets whole groups."""
        played, figures = self._collect(step, on_finish)
        result = self.result(step, played)
        return replace(result, figures=result.figures | figures)

    def result(self, step: int, played: Sequence[Rollout]) -> StepRollouts:
        """Drop failed rollouts and return the rest with their figures, or raise `TrainingError`."""
        # In self-play a partner may leave before the learner's first turn.
        rollouts = [rollout for rollout in played if rollout.turns]
        lost = [rollout.error for rollout in played if rollout.error]
        if not rollouts:
            why = lost[0] if lost else "all ended before the agent's first turn"
            raise TrainingError(f"every episode of step {step} was lost: {why}")
        members = [rollout for rollout in rollouts if rollout.parent is None]
        branched = branch_figures(rollouts) if self._config.rollout.branch.at else {}
        return StepRollouts(rollouts, rollout_figures(members, len(lost)) | branched)

    async def max_open_groups(self) -> int:
        """Return how many groups may be open at once."""
        return await self._pool.max_open_groups()

    async def play_group(self, step: int, index: int) -> list[Rollout]:
        """Return the rollouts of the group `index` of those that a step draws."""
        rollout, seed = self._config.rollout, seed_of(self._config.run.seed, _ROLLOUTS, step)
        draw = self._sampler.draw(step, rollout.tasks_per_step)[index]
        options = CollectOptions(branch=self._branches(seed))
        return await collect(
            self._pool, [draw], self._actor(), seed=seed, options=options, group_indices=[index]
        )

    def _collect(self, step: int, on_finish: OnFinish) -> tuple[list[Rollout], dict[str, float]]:
        """Return all rollouts of a step, failed ones included, and figures of their collection."""
        rollout = self._config.rollout
        seed = seed_of(self._config.run.seed, _ROLLOUTS, step)
        options = CollectOptions(
            enough_members=rollout.enough_members,
            enough_share=rollout.enough_share,
            enough_turns=rollout.enough_turns or 0,
            on_finish=on_finish,
            branch=self._branches(seed),
        )
        returns = self._state_returns()
        if returns is not None:
            options = replace(options, run=returns.run)

        def draw(round_index: int = 0) -> list[TaskDraw]:
            return self._sampler.draw(step, rollout.tasks_per_step, round_index)

        if rollout.dynamic_sampling:
            sampled = self._run(
                collect_informative(
                    self._pool,
                    draw,
                    self._actor(),
                    seed=seed,
                    informative=self._is_informative,
                    processes=self._processes,
                    options=options,
                )
            )
            figures = sampled.figures() | self._measured() | self._cost(returns)
            return [*sampled.rollouts, *sampled.lost], figures
        draws = draw()
        played = self._run(
            collect_distributed(
                self._processes, self._pool, draws, self._actor(), seed=seed, options=options
            )
        )
        if self.curriculum is not None:
            for group in range(len(draws)):
                self.curriculum.record([one for one in played if one.group == group])
        stopped = {"rollout/stopped_share": _stopped_share(played, len(draws), rollout)}
        return played, stopped | self._measured() | self._cost(returns)

    def _is_informative(self, rollouts: Sequence[Rollout]) -> bool:
        """Return whether the returns of a group differ; a curriculum takes note of the group."""
        if self.curriculum is not None:
            self.curriculum.record(rollouts)
        return returns_differ(rollouts, self._config.method.reward)

    def _measured(self) -> dict[str, float]:
        return {} if self.curriculum is None else self.curriculum.end_step()

    def _branches(self, seed: int) -> Branches | None:
        branch, method = self._config.rollout.branch, self._config.method
        if not branch.at:
            return None
        gamma = method.credit.get("gamma", 1.0)
        return Branches(branch, seed, method.reward, gamma, method.reward_scale)

    def _state_returns(self) -> StateReturns | None:
        """Return the player of a step's continuations; None if the method needs none."""
        method, agent = self._config.method, self._agent
        if not self._continuations:
            return None
        if isinstance(agent.completer, HFCompleter):  # each prompt is continued several times
            repeated, tokens = RepeatedPrompts(agent.completer), self._policy.chat_tokenizer
            agent = make_agent(self._config, repeated, self._config.agent.temperature, tokens)
        player = AgentContinuations(agent, self._config.rollout.max_live)
        gamma = method.credit.get("gamma", 1.0)
        return StateReturns(player, self._continuations, method.reward, gamma, method.reward_scale)

    def _cost(self, returns: StateReturns | None) -> dict[str, float]:
        if returns is None:
            return {}
        costs: list[Cost] = self._processes.gather(returns.cost)
        return {
            "rollout/continuations": float(sum(cost.continuations for cost in costs)),
            "rollout/continuation_steps": float(sum(cost.steps for cost in costs)),
            "rollout/continuation_tokens": float(sum(cost.tokens for cost in costs)),
            "time/continuations_s": max(cost.seconds for cost in costs),
        }

    @property
    def data_version(self) -> str:
        """The version of the environment's data."""
        return self._pool.data_version

    def close(self) -> None:
        """Close the environments."""
        self._pool.close()

    def _actor(self) -> Actor:
        if self._kind != "expert":
            return self._agent
        warm = self._config.warmstart
        return DemonstrationActor(self._config, self._policy, warm.expert, warm.noise)


def _stopped_share(played: Sequence[Rollout], num_groups: int, config: RolloutConfig) -> float:
    """Return the share of episodes that were stopped because enough others had ended."""
    lost = len({rollout.group for rollout in played if rollout.error})
    ended = sum(not rollout.error and rollout.parent is None for rollout in played)
    begun = (num_groups - lost) * config.group_size
    return 1 - ended / begun if begun else 0.0


def branch_figures(rollouts: Sequence[Rollout]) -> dict[str, float]:
    """Return the figures of a step's siblings; `rollout_figures` leaves siblings out."""
    siblings = [rollout for rollout in rollouts if rollout.parent is not None]
    steps, tokens = cost(siblings)
    return {
        "rollout/siblings": float(len(siblings)),
        "rollout/sibling_steps": float(steps),
        "rollout/sibling_tokens": float(tokens),
        "rollout/shared_turns": float(sum(rollout.branch_turn for rollout in siblings)),
    }


def rollout_figures(rollouts: Sequence[Rollout], lost: int) -> dict[str, float]:
    """Return the figures of a step's rollouts, under `rollout/`."""
    turns = [turn for rollout in rollouts for turn in rollout.turns]
    context_limited = sum(r.stop_reason is StopReason.CONTEXT_LIMIT for r in rollouts)
    summaries = sum(turn.summary is not None for turn in turns)
    return {
        "rollout/context_limit_share": context_limited / len(rollouts),
        "rollout/success": sum(r.success for r in rollouts) / len(rollouts),
        "rollout/score": sum(r.score for r in rollouts) / len(rollouts),
        "rollout/turns": len(turns) / len(rollouts),
        "rollout/invalid_share": sum(t.feedback in INVALID_FEEDBACK for t in turns) / len(turns),
        "rollout/unfinished_share": sum(not t.completion.finished for t in turns) / len(turns),
        "rollout/prompt_tokens": sum(len(t.completion.prompt_ids) for t in turns) / len(turns),
        "rollout/response_tokens": sum(len(t.completion.response_ids) for t in turns) / len(turns),
        **_thought_figures([turn.completion for turn in turns]),
        **({"rollout/summaries": summaries / len(rollouts)} if summaries else {}),
        "rollout/lost_groups": float(lost),
        **_success_by_family(rollouts),
    }


def _thought_figures(answers: Sequence[Completion]) -> dict[str, float]:
    lengths = [one.thought_tokens for one in answers if one.thought_tokens is not None]
    if not any(lengths):
        return {}
    return {
        "rollout/thought_tokens": sum(lengths) / len(lengths),
        "rollout/thought_tokens_max": float(max(lengths)),
        "rollout/cut_thought_share": sum(one.cut_thought for one in answers) / len(answers),
    }


def _success_by_family(rollouts: Sequence[Rollout]) -> dict[str, float]:
    successes: dict[str, list[bool]] = {}
    for rollout in rollouts:
        successes.setdefault(rollout.family, []).append(rollout.success)
    return {
        f"rollout/success_{name}": sum(successes[name]) / len(successes[name])
        for name in sorted(successes)
    }
