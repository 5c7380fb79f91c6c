"""Replays the recordings of an evaluation: what it claims is what its environment says."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import gymnasium as gym

from agentgyms.core.arguments import private_names
from agentgyms.core.env import TextEnv
from agentgyms.core.errors import AgentGymsError
from agentgyms.recording import recording_format
from agentgyms.recording.recorder import COMPARED, OUTCOMES, recorded_arguments, replay_in
from agentgyms.recording.recording_format import Recording
from agentgyms.recording.untrusted import check_id, make_here
from agentgyms.registration import find_maker
from harness.evaluation.episodes import EPISODE_KEY
from harness.evaluation.play_units import PlannedUnit, plan
from harness.evaluation.results import RESULT, read_json
from harness.reporting.leaderboard.submissions import check_files
from harness.reporting.results import loading
from harness.reporting.results.loading import LoadedEvaluation
from harness.types import plugins
from harness.types.errors import ResultError

_PARTIES: Final = ("partner", "judge")
_MODELS: Final = {"partner": "partner", "judge": "judge", "customer": "partner"}
"""Arguments of environments that may be models, and the parties that these are."""
_TRAIL: Final = ("state_key", "observation_key", "feedback")
"""Fields of a turn that tell actions apart, and that a replay has compared."""
_MOST_TRIALS: Final = 100
_MOST: Final = {"seeds": 100, "tasks": 200_000}


@dataclass(frozen=True, slots=True)
class Verified:
    """An evaluation that was replayed."""

    evaluation: LoadedEvaluation  # the evaluation, recounted from its recordings
    split_tasks: int
    usual_turns: int  # turn limit of the environment where nobody sets one
    data_source: str  # as the environment says
    episodes: int
    trail: str  # a digest of all states, equal for the same actions in whatever words and file


def verify(folder: Path, on_plan: Callable[[int], Any], on_episode: Callable[[], Any]) -> Verified:
    """Replay every episode of an evaluation in this process; its folder is not trusted.

    Nothing is read, connected to, run or imported because the folder says so. `on_plan` is called
    with the number of episodes, `on_episode` after each. Raises `ResultError` or another
    `AgentGymsError` if it cannot be verified.
    """
    check_files(folder)
    _check_sizes(read_json(folder / RESULT))
    one = loading.evaluation(folder)
    result = one.result
    planned, missing = len(result["seeds"]) * len(result["tasks"]), result["episodes"]["missing"]
    if missing or result["missing"] or result["episodes"]["finished"] != planned:
        raise ResultError(
            f"{missing} of {planned} episodes are missing, play them with: harness eval --resume "
            f"{shlex.quote(str(folder))}"
        )
    with closing(_open(result)) as env:
        units = _units(result, env)
        on_plan(len(result["outcomes"]))
        played = _Played(units, int(result["agent"]["trials"]))
        path = folder / result["recordings"]["file"]
        lines = recording_format.lines_of(path)  # one episode in memory at a time
        for recording in recording_format.parse(lines, path.name):
            unit = played.add(recording)
            _check_header(recording.header, result, env, unit)
            try:
                replay_in(env, recording, (*COMPARED, *OUTCOMES))
            except (AgentGymsError, gym.error.Error) as e:
                raise ResultError(f"{_name(unit)} does not replay: {e}") from None
            on_episode()
        played.check_whole()
        split_tasks, source = len(env.tasks), env.data_source
    environment = result["environment"]
    given = {**environment["kwargs"], "split": environment["split"]}
    with closing(make_here(_environment_id(result), given)) as env:
        usual_turns = env.max_turns
    return Verified(one, split_tasks, usual_turns, source, played.episodes, played.trail())


def _check_sizes(result: Mapping[str, Any]) -> None:
    """Raise `ResultError` if counting a result again would take as long as its author likes."""
    trials = result.get("agent", {}).get("trials")
    if not isinstance(trials, int) or not 1 <= trials <= _MOST_TRIALS:
        raise ResultError(f"it names {trials!r:.20} trials of a task: expected 1 to {_MOST_TRIALS}")
    for name, most in _MOST.items():
        if len(result.get(name, ())) > most:
            raise ResultError(f"it names {len(result[name])} {name}: at most {most} are counted")


def _open(result: Mapping[str, Any]) -> TextEnv:
    """Return the environment that a result describes; refuse one with other data."""
    environment = result["environment"]
    found, given = _environment_id(result), dict(environment["kwargs"])
    private = private_names(find_maker(found)[0], given)
    for argument, role in _MODELS.items():  # a model took part whose answers cannot be replayed
        if argument in private:
            raise ResultError(
                f"its {argument} is the model {result.get(role)!s:.80}: what a model answered "
                "cannot be replayed, so its scores cannot be verified here"
            )
    limit = result["config"]["env"].get("max_turns")  # None: the environment's own
    given |= {"split": environment["split"], **({} if limit is None else {"max_turns": limit})}
    env = make_here(found, given)
    try:
        _check_environment(env, result)
    except ResultError:
        env.close()
        raise
    return env


def _check_environment(env: TextEnv, result: Mapping[str, Any]) -> None:
    turns, data = (result["environment"][name] for name in ("max_turns", "data_version"))
    if env.max_turns != turns:
        raise ResultError(f"it names {turns!s:.20} turns, and its environment has {env.max_turns}")
    if env.data_version != data:
        raise ResultError(f"it is of other data: {data!s:.60}, and here is {env.data_version}")
    parties = {name: result.get(name) for name in _PARTIES if result.get(name)}
    if dict(env.parties) != parties:
        raise ResultError(f"it names {parties!s:.80}, and its environment has {env.parties}")
    recorded = result.get("data_source")
    if recorded != env.data_source:
        raise ResultError(f"it names the data {recorded!r:.40}, which is {env.data_source!r}")


def _environment_id(result: Mapping[str, Any]) -> str:
    return plugins.find_environment(check_id(str(result["environment"]["id"])))


def _units(result: Mapping[str, Any], env: TextEnv) -> dict[tuple[int, int], PlannedUnit]:
    """Return the units that `harness eval` plays, by seed and index; refuse other tasks."""
    tasks, seeds = env.tasks, [int(seed) for seed in result["seeds"]]
    units = plan(tasks, len(result["tasks"]), seeds)
    chosen = [
        [unit.task_id, tasks.find(unit.task_id).family] for unit in units if unit.seed == seeds[0]
    ]
    if result["tasks"] != chosen or result["environment"]["tasks"] != len(chosen):
        raise ResultError(
            f"its tasks are not the {len(chosen)} that harness eval --tasks {len(chosen)} plays of "
            f"the split {env.split}"
        )
    return {unit.key: unit for unit in units}


class _Played:
    """The trials of planned units that a file of recordings holds."""

    def __init__(self, units: Mapping[tuple[int, int], PlannedUnit], trials: int) -> None:
        self._units, self._trials = units, trials
        self._outcomes: dict[tuple[int, int], list[bool]] = {}
        self._trails: list[tuple[int, int, int, str]] = []

    @property
    def episodes(self) -> int:
        return sum(map(len, self._outcomes.values()))

    def add(self, recording: Recording) -> PlannedUnit:
        """Return the unit of an episode; refuse one that was not planned, or not the next trial."""
        about = recording.header["provenance"][EPISODE_KEY]
        key = about["seed"], about["index"]
        if key not in self._units:
            raise ResultError(f"it holds an episode that was not planned: seed and task {key}")
        outcomes = self._outcomes.setdefault(key, [])
        if about["trial"] != len(outcomes) + 1 or True in outcomes or len(outcomes) >= self._trials:
            raise ResultError(f"{_name(self._units[key])}: trial {about['trial']} is not its next")
        outcomes.append(bool(recording.turns[-1].info["success"]))
        states = [[turn.info[name] for name in _TRAIL] for turn in recording.turns]
        digest = sha256(json.dumps(states).encode()).hexdigest()
        self._trails.append((*key, len(outcomes), digest))
        return self._units[key]

    def trail(self) -> str:
        """Return the digest of all episodes, in whatever order they are."""
        return sha256(json.dumps(sorted(self._trails)).encode()).hexdigest()

    def check_whole(self) -> None:
        for key, unit in self._units.items():
            outcomes = self._outcomes.get(key, [])
            if True not in outcomes and len(outcomes) < self._trials:
                raise ResultError(f"{_name(unit)}: {len(outcomes)} of {self._trials} trials")


def _check_header(
    header: Mapping[str, Any], result: Mapping[str, Any], env: TextEnv, unit: PlannedUnit
) -> None:
    kwargs = dict(header["kwargs"])
    if result["model"].get("backend") == "expert":
        kwargs.pop("oracle", None)
    expected = {
        "environment": (header["env_id"], result["environment"]["id"]),
        "arguments": (kwargs, json.loads(json.dumps(recorded_arguments(env)))),
        "data version": (header.get("data_version"), env.data_version),
        "parties": (header.get("parties"), dict(env.parties)),
        "seed": (header["seed"], unit.draw.seed),
        "options": (header["options"], {"task_id": unit.task_id}),
    }
    for name, (recorded, wanted) in expected.items():
        if recorded != wanted:
            raise ResultError(
                f"{_name(unit)} is no episode of this evaluation: {name} {recorded!s:.80} in place "
                f"of {wanted!s:.80}"
            )


def _name(unit: PlannedUnit) -> str:
    return f"task {unit.task_id}, seed {unit.seed}"
