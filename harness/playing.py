"""Who plays a training step, and on which tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from harness import methods, prompts
from harness.agent import Actor, Agent, Decision, EpisodeView
from harness.collect import EnvPool, Progress
from harness.completers import Completer, Sampling
from harness.completers.scripted import ScriptedCompleter
from harness.config import Config, RolloutConfig
from harness.credit.table import INVALID_FEEDBACK
from harness.dealing import collect_dealt
from harness.errors import ContextOverflow, TrainingError
from harness.policy import Policy
from harness.ranks import ALONE, Ranks
from harness.rollout import Completion, Rollout, StopReason
from harness.sampling import TaskDraw, TaskSampler, seed_of
from harness.sampling_rounds import collect_informative, returns_differ
from harness.warmstart import Demonstrator

_ROLLOUTS = 1
"""Stream of random numbers; the trainer has the others."""


@dataclass(frozen=True, slots=True)
class Played:
    """What a step played.

    Attributes:
        rollouts: Those without errors that have a turn.
        figures: To log, under `rollout/`.
    """

    rollouts: list[Rollout]
    figures: dict[str, float] = field(default_factory=dict)


class Player:
    """Plays the rollouts of training steps.

    Args:
        config: The run, resolved.
        policy: The one that is trained.
        completer: Generates; for methods whose rollouts are the first policy's, with its weights.
        run: Runs a coroutine to its end.
        ranks: The processes that the groups are dealt to.
    """

    def __init__(
        self,
        config: Config,
        policy: Policy,
        completer: Completer,
        run: Callable[[Coroutine[Any, Any, Any]], Any] = asyncio.run,
        ranks: Ranks = ALONE,
    ) -> None:
        """Make no environment yet."""
        self._run, self._ranks = run, ranks
        self._config, self._policy = config, policy
        self._kind = methods.get(config.method.name).actor
        self._agent = make_agent(config, completer, config.agent.temperature)
        oracle = {"oracle": True} if self._kind == "expert" else {}
        self._pool = make_pool(config, config.env.train_split, config.rollout.group_size, **oracle)
        self._sampler = TaskSampler(tasks_of(self._pool), config.run.seed)

    def play(self, step: int, on_finish: Progress = lambda _: None) -> Played:
        """Return the rollouts of a training step, from 0.

        Args:
            step: Its number.
            on_finish: Called with each rollout once its group has ended.

        Raises:
            TrainingError: Not one episode could be played.
        """
        rollout = self._config.rollout
        seed = seed_of(self._config.run.seed, _ROLLOUTS, step)
        enough: dict[str, Any] = {
            "enough_members": rollout.enough_members,
            "enough_share": rollout.enough_share,
            "enough_turns": rollout.enough_turns or 0,
            "on_finish": on_finish,
        }

        def draw(again: int = 0) -> list[TaskDraw]:
            return self._sampler.draw(step, rollout.tasks_per_step, again)

        figures: dict[str, float] = {}
        if rollout.dynamic_sampling:
            rounds = self._run(
                collect_informative(
                    self._pool,
                    draw,
                    self._actor(),
                    seed=seed,
                    informative=partial(returns_differ, reward=self._config.method.reward),
                    max_draws=rollout.max_draws,
                    ranks=self._ranks,
                    **enough,
                )
            )
            played, figures = [*rounds.rollouts, *rounds.lost], rounds.figures()
        else:
            draws = draw()
            played = self._run(
                collect_dealt(self._ranks, self._pool, draws, self._actor(), seed=seed, **enough)
            )
            figures = {"rollout/stopped_share": _stopped_share(played, len(draws), rollout)}
        rollouts = [one for one in played if one.turns]  # a partner may leave before the first one
        lost = [one.error for one in played if one.error]
        if not rollouts:
            why = lost[0] if lost else "all ended before the agent's first turn"
            raise TrainingError(f"every episode of step {step} was lost: {why}")
        return Played(rollouts, rollout_figures(rollouts, len(lost)) | figures)

    def close(self) -> None:
        """Close the environments."""
        self._pool.close()

    def _actor(self) -> Actor:
        """Return who decides in a step; an expert forgets what it met in the step before."""
        if self._kind != "expert":
            return self._agent
        warm = self._config.warmstart
        return Expert(self._config, self._policy, warm.expert, warm.noise)


class Expert:
    """The environment's expert, whose answers have tokens, as if the policy had said them.

    Foreign actions, which noise brings in, and moves that the expert is not sure of count as
    malformed, so that nobody imitates them. There are no log-probabilities: all are 0.

    Args:
        config: The run.
        policy: Whose tokens the prompts and answers get.
        kind: Which expert.
        noise: Share of foreign actions, in [0, 1).
    """

    def __init__(self, config: Config, policy: Policy, kind: str, noise: float) -> None:
        """Raise `ConfigError` if `noise` is out of range."""
        self._agent = make_silent_agent(config)
        self._policy = policy
        self._demonstrator = Demonstrator(self._agent, kind, noise)

    async def act(self, view: EpisodeView, seed: int) -> Decision:
        """Return the expert's action.

        Raises:
            ContextOverflow: Prompt and answer do not fit into the model's context.
        """
        decision = await self._demonstrator.act(view, seed)
        sure = bool(self._demonstrator.demonstrations)
        self._demonstrator.demonstrations.clear()
        self._demonstrator.texts.clear()
        policy, messages = self._policy, self._agent.messages(view)
        prompt = policy.encode_chat(messages)
        answer = decision.completion.text
        said = (*policy.encode(answer), int(policy.tokenizer.eos_token_id))
        if len(prompt) + len(said) > policy.max_length:
            raise ContextOverflow(
                f"a prompt of {len(prompt)} tokens and {len(said)} of the expert's answer exceed "
                f"the model's {policy.max_length}"
            )
        completion = Completion(
            answer, prompt, said, (0.0,) * len(said), images=policy.chats.images(messages)
        )
        return replace(decision, completion=completion, valid=decision.valid and sure)


def make_agent(config: Config, completer: Completer, temperature: float) -> Agent:
    """Return the agent of a run, sampling at `temperature`."""
    return _agent(config, completer, Sampling(temperature, config.agent.max_tokens))


def make_silent_agent(config: Config) -> Agent:
    """Return the agent of a run without a model, for its prompts."""
    return _agent(config, ScriptedCompleter(_nobody), Sampling())


def _agent(config: Config, completer: Any, sampling: Sampling) -> Agent:
    style = prompts.load(config.agent.style, config.env.id)
    return Agent(completer, style, sampling, config.agent.window, config.agent.context)


def _nobody(_: Sequence[Any]) -> str:
    raise AssertionError("demonstrations come from the expert, not from a model")


def make_pool(config: Config, split: str, group_size: int, **kwargs: Any) -> EnvPool:
    """Return environments of a split."""
    settings = {**config.env.kwargs, "split": split, **kwargs}
    if config.env.max_turns is not None:
        settings["max_turns"] = config.env.max_turns
    return EnvPool(config.env.id, group_size, config.rollout.max_live, **settings)


def make_eval_pool(config: Config, split: str) -> EnvPool:
    """Return environments of a split as evaluation has them, one of a task."""
    env, own = config.env, config.eval
    limit = env.max_turns if own.max_turns is None else own.max_turns
    env = replace(env, max_turns=limit, kwargs={**env.kwargs, **own.kwargs})
    return make_pool(replace(config, env=env), split, 1)


def tasks_of(pool: EnvPool) -> Any:
    """Return the task set that a pool's environments play."""
    group = pool.take()
    tasks = group.envs[0].tasks
    pool.give_back(group)
    return tasks


def _stopped_share(played: Sequence[Rollout], num_groups: int, config: RolloutConfig) -> float:
    """Return the share of episodes that were broken off because enough others had ended."""
    lost = len({rollout.group for rollout in played if rollout.error})
    ended = sum(not rollout.error for rollout in played)
    begun = (num_groups - lost) * config.group_size
    return 1 - ended / begun if begun else 0.0


def rollout_figures(rollouts: Sequence[Rollout], lost: int) -> dict[str, float]:
    """Return the figures of a step's rollouts, under `rollout/`."""
    turns = [turn for rollout in rollouts for turn in rollout.turns]
    cut = sum(r.stop_reason is StopReason.CONTEXT_LIMIT for r in rollouts)
    return {
        "rollout/context_limit_share": cut / len(rollouts),
        "rollout/success": sum(r.success for r in rollouts) / len(rollouts),
        "rollout/score": sum(r.score for r in rollouts) / len(rollouts),
        "rollout/turns": len(turns) / len(rollouts),
        "rollout/invalid_share": sum(t.feedback in INVALID_FEEDBACK for t in turns) / len(turns),
        "rollout/unfinished_share": sum(not t.completion.finished for t in turns) / len(turns),
        "rollout/prompt_tokens": sum(len(t.completion.prompt_ids) for t in turns) / len(turns),
        "rollout/response_tokens": sum(len(t.completion.response_ids) for t in turns) / len(turns),
        "rollout/lost_groups": float(lost),
        **_success_by_family(rollouts),
    }


def _success_by_family(rollouts: Sequence[Rollout]) -> dict[str, float]:
    won: dict[str, list[bool]] = {}
    for rollout in rollouts:
        won.setdefault(rollout.family, []).append(rollout.success)
    return {f"rollout/success_{name}": sum(won[name]) / len(won[name]) for name in sorted(won)}
