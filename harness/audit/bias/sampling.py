"""Episodes of a world as turn tables, and the gradients that advantages give on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from harness.audit.bias.worlds import Objective, TabularTask, World
from harness.credit.table import TurnTable
from harness.types.arrays import Floats, Ints

REWARD_SCALE: Final = 10.0
"""Factor on the rewards that estimators read, as in training; gradients are divided by it."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """Steps of training, each with equally many groups of each task. N turns, M steps, D logits.

    `turns` has success as its reward. `places` are numbers of the world's logits: that of the
    action of each turn, and the first one of its state.
    """

    world: World
    turns: TurnTable
    environment: Floats  # reward of the environment for each turn. Shape [N]
    step: Ints  # step of each turn, in order. Shape [N]
    places: tuple[Ints, Ints]  # shape [N] each
    policy: Floats  # probabilities at each turn. Shape [N, A], with A that of the task with most
    episodes: int  # of a step
    advantage: Floats  # exact advantage by the objective, unscaled. Shape [N]

    def gradients(self, advantage: Floats, steps: int) -> Floats:
        """Return each step's policy gradient, the mean over its episodes. Shape [M, D]."""
        size = sum(task.logits.size for task in self.world.tasks)
        taken, first = self.places
        found = np.bincount(self.step * size + taken, advantage, steps * size).astype(np.float64)
        for action in range(self.policy.shape[1]):
            # Padding has probability 0; its place may be another state's.
            place = np.minimum(first + action, size - 1)
            weight = advantage * self.policy[:, action]
            found -= np.bincount(self.step * size + place, weight, steps * size)
        return found.reshape(steps, size) / self.episodes

    def by_step(self) -> Iterator[tuple[slice, TurnTable]]:
        """Yield the rows and the table of each step."""
        ends = np.flatnonzero(np.diff(self.step, append=-1)) + 1
        for start, end in zip(np.append(0, ends[:-1]).tolist(), ends.tolist(), strict=True):
            yield slice(start, end), rows_of(self.turns, slice(start, end))


def rows_of(turns: TurnTable, rows: slice) -> TurnTable:
    """Return the table of whole rollouts that stand in a row."""
    kept: dict[str, Any] = {
        name: column[rows] for name, column in vars(turns).items() if isinstance(column, np.ndarray)
    }
    kept["rollout"] = kept["rollout"] - kept["rollout"][0]
    return replace(turns, **kept)


def draw(
    world: World,
    steps: int,
    groups: int,
    size: int,
    rng: np.random.Generator,
    *,
    objective: Objective = "success",
    continuations: int = 8,
) -> Drawn:
    """Play steps of `groups` groups of `size` episodes for each task.

    The columns `value`, `entropy`, `energy` and `length` (1) are exact. For success the table has
    `state_value`, the mean of so many continuations, and `hindsight`, too.
    """
    parts = [
        _play(task, number, (steps, groups, size), rng, objective, continuations)
        for number, task in enumerate(world.tasks)
    ]
    columns: dict[str, Any] = {
        name: np.concatenate([part[name] for part in parts]) for name in _sized(parts)
    }
    # Steps first, then tasks; rows of an episode stay together and in order.
    order = np.lexsort((columns["turn"], columns["episode"], columns["task"], columns["step"]))
    columns = {name: column[order] for name, column in columns.items()}
    begins = columns["turn"] == 0
    group = columns["task"] * (steps * groups) + columns["episode"] // size
    turns = TurnTable(
        rollout=np.cumsum(begins) - 1,
        group=np.unique(group, return_inverse=True)[1].astype(np.int64),
        valid=np.ones(len(order), np.bool_),
        failed=np.zeros(len(order), np.bool_),
        ends_turn=np.ones(len(order), np.bool_),
        length=np.ones(len(order)),
        **{name: columns[name] for name in _OF_TABLE if name in columns},
    )
    offsets = np.cumsum([0, *(task.logits.size for task in world.tasks)])[columns["task"]]
    places = offsets + columns["taken"], offsets + columns["first"]
    return Drawn(
        world, turns, columns["environment"], columns["step"], places, columns["policy"],
        groups * size * len(world.tasks), columns["advantage"],
    )  # fmt: skip


_OF_TABLE: Final = (
    *("turn", "reward", "success", "state_key", "next_state_key", "action_key", "text"),
    *("value", "entropy", "energy", "state_value", "hindsight"),
)


def _sized(parts: list[dict[str, Any]]) -> list[str]:
    """Return the names of the columns; policies get as many columns as the widest one."""
    widest = max(part["policy"].shape[1] for part in parts)
    for part in parts:
        lacking = widest - part["policy"].shape[1]
        part["policy"] = np.pad(part["policy"], ((0, 0), (0, lacking)))
    return list(parts[0])


def _play(
    task: TabularTask,
    number: int,
    shape: tuple[int, int, int],
    rng: np.random.Generator,
    objective: Objective,
    continuations: int,
) -> dict[str, Any]:
    """Return the columns of a task's episodes, rows in the order of turns."""
    steps, groups, size = shape
    model, policy = task.model, task.policy
    episode = np.arange(steps * groups * size)
    state = np.zeros(len(episode), np.int64)
    rows: list[tuple[Ints, ...]] = []  # episode, turn, state, action, transition
    for turn in range(model.horizon):
        action = _picked(policy[state], rng)
        moved = _picked(model.probability[state, action], rng)
        rows.append((episode, np.full(len(episode), turn), state, action, moved))
        goes_on = ~model.over[state, action, moved]
        state = model.after[state, action, moved][goes_on]
        episode = episode[goes_on]
        if not len(episode):
            break
    of, turn_of, at, act, moved = (np.concatenate(column) for column in zip(*rows, strict=True))
    rewards = {name: reward[at, act, moved] for name, reward in model.rewards.items()}
    success = np.bincount(of, rewards["success"], steps * groups * size)[of] > 0
    values = model.evaluate(policy, objective)
    value = values.value[turn_of, at]
    columns = {
        "task": np.full(len(of), number),
        "step": of // (groups * size),
        "episode": of,
        "turn": turn_of,
        "taken": at * policy.shape[1] + act,
        "first": at * policy.shape[1],
        "policy": policy[at],
        "environment": rewards["environment"],
        "reward": REWARD_SCALE * rewards["success"],
        "success": success,
        "advantage": values.advantage[turn_of, at, act],
        "value": REWARD_SCALE * value,
        "entropy": -_log_mean(policy)[at],
        "energy": 1 - 2 * policy[at, act] + (policy**2).sum(axis=1)[at],
        **_keys(task, number, at, act, model.after[at, act, moved]),
    }
    if objective == "success":
        # Returns are 0 or 1, so that their sum is binomial.
        mean = rng.binomial(continuations, np.clip(value, 0, 1)) / continuations
        columns["state_value"] = REWARD_SCALE * mean
        given = values.action_value[turn_of, at, act]
        own, chance = np.where(success, given, 1 - given), np.where(success, value, 1 - value)
        columns["hindsight"] = np.clip(policy[at, act] * own / chance, 0, 1)
    return columns


def _picked(probability: Floats, rng: np.random.Generator) -> Ints:
    """Return a number drawn by each row of probabilities."""
    total = np.cumsum(probability, axis=1)
    number = (rng.random(len(total))[:, None] * total[:, -1:] >= total).sum(axis=1)
    found: Ints = np.minimum(number, probability.shape[1] - 1).astype(np.int64)
    return found


def _log_mean(policy: Floats) -> Floats:
    """Return the mean logarithm of the probability of a state's action. Shape [S]."""
    found: Floats = (policy * np.log(np.where(policy > 0, policy, 1.0))).sum(axis=1)
    return found


def _keys(task: TabularTask, number: int, at: Ints, act: Ints, after: Ints) -> dict[str, Any]:
    """Return the columns of keys; states of two tasks are different."""
    model = task.model
    keys = np.array([f"{number}: {key}" for key in model.keys], dtype=object)
    words: NDArray[Any] = np.full(model.legal.shape, "", dtype=object)
    for state, names in enumerate(model.actions):
        words[state, : len(names)] = names
    action, seen = words[at, act], keys[after]
    return {
        "state_key": keys[at],
        "next_state_key": seen,
        "action_key": action,
        "text": action + " || " + seen,
    }
