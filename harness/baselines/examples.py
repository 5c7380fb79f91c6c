"""Worked examples: episodes that the environment's expert solves, as text."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import agentgyms
from agentgyms.core import Observation, TextEnv
from agentgyms.errors import BadOption, UnknownSplit
from agentgyms.group import GroupEnv
from agentgyms.observations import text_of
from agentgyms.tasks import Task, TaskSet
from harness import parsing, prompts
from harness.budget import cut_middle
from harness.errors import ConfigError
from harness.evaluate import choose
from harness.evaluation.config import EvaluationConfig
from harness.sampling import seed_of
from harness.seats import is_partners

_SPLIT: Final = "train"
_EXPERT: Final = "best"
_SEED: Final = 0
_TRIED_FOR_EACH: Final = 4
_LONGEST_OBSERVATION: Final = 800


@dataclass(frozen=True, slots=True)
class _Example:
    """A solved episode."""

    task: Task
    text: str


def gather(config: EvaluationConfig, style: prompts.PromptStyle) -> tuple[str, ...]:
    """Return `config.agent.examples` worked examples as text, the same ones every time.

    They are episodes of the split `train` in which the expert `best` succeeds: what was seen, long
    texts cut, and what was done, in the form that the style asks for, by the learner's seat alone.
    No thoughts are made up. No task of the evaluated split is among them. Families take turns, and
    each gives its shortest episodes first, among four times as many tasks as are wanted, spread
    over the split.

    Args:
        config: The evaluation; its environment's arguments are used for the examples too.
        style: How actions are written.

    Raises:
        ConfigError: The environment has no expert or no split `train`, all of that split's tasks
            are evaluated, the style shows images, or the expert does not solve enough tasks.
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
    chosen = _dealt([example for example in solved if example])[:wanted]
    if len(chosen) < wanted:
        raise ConfigError(
            f"the expert of {config.env.id} solves {len(chosen)} of the {len(tried)} tasks tried: "
            f"set agent.examples to at most {len(chosen)}"
        )
    return tuple(example.text for example in chosen)


def _open(config: EvaluationConfig, split: str) -> GroupEnv:
    """Return one environment of a split, told solutions, as a group that closes itself."""
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
                turns.append({"observation": _seen(observation), "action": _written(style, action)})
            observation, _, terminated, truncated, info = env.step(action)
            over = terminated or truncated
    except BadOption as e:
        raise ConfigError(f"worked examples need an expert: {e}; set agent.examples to 0") from e
    if not info["success"]:
        return None
    part = prompts.load_part("episode", env.spec.id if env.spec else "")
    return _Example(task, part.render(goal=info["goal"], turns=turns).strip())


def _seen(observation: Observation) -> str:
    return cut_middle(text_of(observation), _LONGEST_OBSERVATION)


def _written(style: prompts.PromptStyle, action: str) -> str:
    """Return an action as an answer says it, without a thought; a letter would say nothing here."""
    if parsing.get(style.parser).lettered:
        return action
    return parsing.outside_thoughts(style.answer(action))


def _dealt(examples: Sequence[_Example]) -> list[_Example]:
    """Return the examples, one of each family in turn, short ones first."""
    families: dict[str, list[_Example]] = {}
    for example in sorted(examples, key=lambda e: (len(e.text), e.task.task_id)):
        families.setdefault(example.task.family, []).append(example)
    ranked = [
        (rank, order, example)
        for order, family in enumerate(families.values())
        for rank, example in enumerate(family)
    ]
    return [example for _, _, example in sorted(ranked, key=lambda r: r[:2])]
