"""Recorded rollouts of files, runs' folders or the bundled example as one table."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

import agentgyms
from agentgyms.core import experts
from agentgyms.core.env import Feedback, TextEnv
from agentgyms.core.outcome import text_of
from harness.credit.table import TurnTable
from harness.rollouts import rollout_files
from harness.types.arrays import Floats
from harness.types.errors import ConfigError, TableError
from harness.types.json_files import read_object
from harness.types.rollout import Completion, Rollout, StopReason, Turn

_REWARD_TEXTS: Final = {"environment": "the environment's", "success": "1 for success"}


@dataclass(frozen=True, eq=False)
class RecordedRollouts:
    """Rollouts and their turns."""

    rollouts: Sequence[Rollout]  # the usable rollouts; number i is the table's rollout i
    turns: TurnTable
    source: str  # names of files or runs
    reward: str  # the kind of the table's rewards, as text
    left_out: int = 0

    @property
    def counts(self) -> str:
        """Numbers of rollouts, groups and turns, as text."""
        groups = len(np.unique(self.turns.group))
        numbers = {"rollout": len(self.rollouts), "group": groups, "turn": len(self.turns)}
        rollouts, within, turns = (f"{n} {name}{'s' * (n != 1)}" for name, n in numbers.items())
        return f"{rollouts} in {within}, {turns}"


def load(
    paths: Sequence[Path], *, reward: str | None = None, reward_scale: float | None = None
) -> RecordedRollouts:
    """Return the rollouts of files and of runs' folders as one table.

    Groups of different files stay different. From a run's folder the last kept step is read, and
    its configuration gives the defaults of `reward` and `reward_scale`, else `environment` and 10.
    Raises `ConfigError` if a folder has no rollouts, `DataMissing` or `DataCorrupt` if a file
    cannot be read, `TableError` if no rollout can be credited.
    """
    rollouts: list[Rollout] = []
    columns: list[tuple[int, Mapping[str, Floats]]] = []
    trained_on: dict[str, Any] = {}
    groups = 0
    for path in paths:
        if path.is_dir():
            with suppress(ConfigError, LookupError, TypeError):  # it cannot be read
                method = read_object(path / "config.json", ConfigError)["method"]
                trained_on |= {name: method[name] for name in ("reward", "reward_scale")}
            steps = sorted((path / "rollouts").glob("step-*.jsonl*"))
            if not steps:
                raise ConfigError(
                    f"{path} has no rollouts yet: those of its last step are kept at its end, "
                    "others with --set run.keep_rollouts=10; or give a file"
                )
        kept = rollout_files.read(steps[-1] if path.is_dir() else path)
        rollouts += [replace(rollout, group=rollout.group + groups) for rollout in kept.rollouts]
        columns.append((sum(len(rollout.turns) for rollout in kept.rollouts), kept.columns))
        groups = max((rollout.group for rollout in rollouts), default=-1) + 1
    own = str(trained_on.get("reward", "environment"))
    if ":" in own and not reward:  # a file alone must not get code imported
        raise ConfigError(
            f"the run was trained on the reward {own!r}, code outside this package: give it with "
            f"--reward {own}, or another reward"
        )
    filled = [named for turns, named in columns if turns]  # columns that all files with turns have
    shared = set.intersection(*map(set, filled)) if filled else set()
    return from_rollouts(
        rollouts,
        ", ".join(path.name for path in paths),
        reward=reward or own,
        reward_scale=float(
            trained_on.get("reward_scale", 10.0) if reward_scale is None else reward_scale
        ),
        columns={name: np.concatenate([one[name] for one in filled]) for name in sorted(shared)},
    )


def load_example(
    *, reward: str | None = None, reward_scale: float | None = None
) -> RecordedRollouts:
    """Return the bundled example: ALFWorld tasks played by a noisy expert."""
    return from_rollouts(
        example_rollouts(),
        "ALFWorld, generated tasks, played by an expert who errs",
        reward=reward or "environment",
        reward_scale=10.0 if reward_scale is None else reward_scale,
    )


def from_rollouts(
    rollouts: Sequence[Rollout],
    source: str,
    *,
    reward: str = "environment",
    reward_scale: float = 10.0,
    columns: Mapping[str, Floats] | None = None,
) -> RecordedRollouts:
    """Return rollouts and their table, without those that have an error or no turns.

    Optional `columns` have a number for each turn of all `rollouts`. Raises `TableError` if
    no rollout can be credited, or a column does not fit.
    """
    usable = [bool(rollout.turns) and not rollout.error for rollout in rollouts]
    kept = [rollout for rollout, fits in zip(rollouts, usable, strict=True) if fits]
    if not kept:
        raise TableError(f"{source} has no rollout with turns and without an error")
    turns = TurnTable.from_rollouts(kept, reward=reward, reward_scale=reward_scale)
    rows = np.repeat(usable, [len(rollout.turns) for rollout in rollouts])
    given = {name: np.asarray(column)[rows] for name, column in (columns or {}).items()}
    rewards = _REWARD_TEXTS.get(reward, reward) + (
        "" if reward_scale == 1 else f", times {reward_scale:g}"
    )
    return RecordedRollouts(
        kept, replace(turns, **given), source, rewards, len(rollouts) - len(kept)
    )


ENV_ID: Final = "agentgyms/ALFWorld-v0"
TASKS: Final = (
    "small-valid_seen-heat-0011",
    "small-valid_seen-cool-0037",
    "small-valid_seen-pick2-0030",
)
GROUP_SIZE: Final = 8
MAX_TURNS: Final = 18
_NOISE: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
"""Share of turns in which each member of a group does not follow the expert."""
_BROKEN: Final = "I should look around first."
"""An action in a wrong format."""


def example_rollouts() -> list[Rollout]:
    """Return three groups of eight ALFWorld rollouts; each member follows the expert less often."""
    played: list[Rollout] = []
    settings = {"split": "valid_seen", "oracle": True, "max_turns": MAX_TURNS}
    with agentgyms.make_group(ENV_ID, GROUP_SIZE, **settings) as group:
        for index, task in enumerate(TASKS):
            begun = zip(*group.reset(seed=index, options={"task_id": task}), strict=True)
            for member, (env, (seen, info)) in enumerate(zip(group.envs, begun, strict=True)):
                rollout = Rollout(task, info["family"], index, member, index)
                played.append(_play(env, text_of(seen), info, rollout))
    return played


def _play(env: TextEnv, observation: str, info: dict[str, Any], rollout: Rollout) -> Rollout:
    rng = random.Random(f"{rollout.task_id} {rollout.member}")
    rollout.goal, over = info["goal"], False
    while not over:
        action = _choose(info, rng, _NOISE[rollout.member])
        seen, reward, terminated, truncated, after = env.step(action)
        broken = action == _BROKEN
        turn = Turn(
            observation=observation,
            state_key=info["state_key"],
            completion=Completion(action),
            action=action,
            action_key=after["action_key"],
            feedback=Feedback.MALFORMED.value if broken else after["feedback"],
            reward=float(reward),
            next_observation=text_of(seen),
            next_state_key=after["state_key"],
            progress=after["progress"],
        )
        rollout.turns.append(turn)
        observation, info, over = turn.next_observation, after, terminated or truncated
    rollout.success, rollout.score = info["success"], info["score"]
    rollout.stop_reason = StopReason.TERMINATED if terminated else StopReason.TURN_LIMIT
    return rollout


def _choose(info: dict[str, Any], rng: random.Random, noise: float) -> str:
    if rng.random() >= noise:
        return experts.choose(json.loads(info["oracle"]), "best")
    if rng.random() < 0.1:
        return _BROKEN
    actions: list[str] = info["admissible_actions"]
    return rng.choice(actions)
