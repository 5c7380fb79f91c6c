"""Worked examples: episodes that the environment's expert solves, as text."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

import agentgyms
from agentgyms.core.env import TextEnv
from agentgyms.core.errors import BadOption, UnknownSplit
from agentgyms.core.outcome import text_of
from agentgyms.core.tasks import Task, TaskSet
from agentgyms.registration import GroupEnv
from harness import prompts
from harness.config import EvaluationConfig
from harness.evaluation.evaluate import choose
from harness.prompts.truncation import cut_middle
from harness.rollouts.self_play import is_partners
from harness.types.errors import ConfigError
from harness.types.task_draws import seed_of

_SPLIT: Final = "train"
_EXPERT: Final = "best"
_SEED: Final = 0
_TRIED_FOR_EACH: Final = 4
_LONGEST_OBSERVATION: Final = 800


@dataclass(frozen=True, slots=True)
class _Example:
    task: Task
    text: str


def gather(config: EvaluationConfig, style: prompts.PromptStyle) -> tuple[str, ...]:
    """Return `config.agent.examples` worked examples as text; equal arguments give equal examples.

    An example is an episode of the split `train` in which the expert `best` succeeds: shortened
    observations, and the actions of the learner's seat without thoughts. No example is a task that
    is evaluated. Four times as many tasks as examples, spread over the split, are played. The
    examples are taken from their families in turn, the shortest episodes first. Raises
    `ConfigError` if the environment has no expert or no split `train`, all its tasks are evaluated,
    the style shows images, or the expert solves too few tasks.
    """
    wanted = config.agent.examples
    if not wanted:
        return ()
    if style.shows_image:
        raise ConfigError(
            f"worked examples are text, and the prompt style {style.name} shows images: set "
            "agent.examples to 0"
        )
    with _open(config, _SPLIT) as group:
        env = group.envs[0]
        tasks = _unseen(env.tasks, config)
        tried = choose(tasks, _TRIED_FOR_EACH * wanted)
        solved = [_solved(env, tasks.find(task_id), style, i) for i, task_id in enumerate(tried)]
    chosen = _one_family_in_turn([example for example in solved if example])[:wanted]
    if len(chosen) < wanted:
        limit = config.env.max_turns
        within, more = (f" within {limit} turns", " or env.max_turns higher") if limit else ("", "")
        raise ConfigError(
            f"the expert of {config.env.id} solves {len(chosen)} of the {len(tried)} tasks tried"
            f"{within}: set agent.examples to at most {len(chosen)}{more}"
        )
    return tuple(example.text for example in chosen)


def _open(config: EvaluationConfig, split: str) -> GroupEnv:
    limit = {} if config.env.max_turns is None else {"max_turns": config.env.max_turns}
    settings = {**config.env.kwargs, **limit, "split": split, "oracle": True}
    try:
        return GroupEnv(config.env.id, 1, **settings)
    except UnknownSplit as e:
        raise ConfigError(
            f"worked examples are taken from the split {_SPLIT!r}: {e}; set agent.examples to 0"
        ) from e


def _unseen(tasks: TaskSet, config: EvaluationConfig) -> TaskSet:
    """Return the tasks that the evaluation does not play."""
    if config.env.split == _SPLIT:
        evaluated: Collection[str] = tasks
    else:
        with _open(config, str(config.env.split)) as group:
            evaluated = frozenset(group.envs[0].tasks)
    left = [tasks.find(task_id) for task_id in tasks if task_id not in evaluated]
    if not left:
        raise ConfigError(
            f"worked examples come from the split {_SPLIT!r}, and all its tasks are evaluated: "
            "evaluate another split, or set agent.examples to 0"
        )
    return TaskSet(_SPLIT, left)


def _solved(env: TextEnv, task: Task, style: prompts.PromptStyle, index: int) -> _Example | None:
    """Return the expert's episode of a task, or None if it fails."""
    try:
        observation, info = env.reset(seed=seed_of(_SEED, index), options={"task_id": task.task_id})
        expert = agentgyms.expert(env, _EXPERT)
        turns: list[dict[str, str]] = []
        over = False
        while not over:
            action = expert(observation, info)
            if not is_partners(info):
                seen = cut_middle(text_of(observation), _LONGEST_OBSERVATION)
                turns.append({"observation": seen, "action": style.example(action)})
            observation, _, terminated, truncated, info = env.step(action)
            over = terminated or truncated
    except BadOption as e:
        raise ConfigError(f"worked examples need an expert: {e}; set agent.examples to 0") from e
    if not info["success"]:
        return None
    part = prompts.load_part("episode", env.spec.id if env.spec else "")
    return _Example(task, part.render(goal=info["goal"], turns=turns).strip())


def _one_family_in_turn(examples: Sequence[_Example]) -> list[_Example]:
    families: dict[str, list[_Example]] = {}
    for example in sorted(examples, key=lambda e: (len(e.text), e.task.task_id)):
        families.setdefault(example.task.family, []).append(example)
    rounds = zip_longest(*families.values())
    return [example for one_of_each in rounds for example in one_of_each if example]
