"""The contract, and whether episodes come again: in a second environment, from a recording."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import agentgyms
from agentgyms import testing
from agentgyms.certification.subject import Episode, Subject, repeated
from agentgyms.certification.verdicts import Verdict, verdict
from agentgyms.core.errors import Mismatch
from agentgyms.core.outcome import shown
from agentgyms.recording import RecordEpisodes, recorder
from agentgyms.registration import ENVIRONMENTS, full_id
from agentgyms.testing.playing import plain

_FORKS: Final = 5
_RECORDED: Final = 3
_HASH_SEED: Final = "4242"
"""Python's for the order of sets in the other process, which this one has by chance."""


def contract(subject: Subject) -> Verdict:
    """Run the contract tests of `agentgyms.testing`."""
    tests: dict[str, Callable[[], None]] = {
        "check_env": lambda: testing.check_env(subject.make),
        "check_determinism": lambda: testing.check_determinism(subject.make),
        "check_snapshot": lambda: testing.check_snapshot(subject.make),
        "check_forks": lambda: testing.check_forks(subject.make, _FORKS, subject.seed),
        "check_group": lambda: testing.check_group(
            lambda: agentgyms.make_group(subject.env_id, 2, **subject.arguments)
        ),
    }
    found = ""
    for name, test in tests.items():
        try:
            test()
        except (AssertionError, Mismatch) as e:
            found = f"{name}: {e}"
            break
    return verdict(
        not found,
        found or f"{', '.join(tests)} pass",
        "every contract test of agentgyms.testing passes",
        f"call agentgyms.testing.{found.partition(':')[0]} in a test of yours; mend what it says",
    )


def replay(subject: Subject) -> Verdict:
    """Play the same actions in a second environment, and a recording in this and a new process."""
    episodes = subject.expert
    chance = [subject.play(start, subject.chance("replay")) for start in subject.starts[:_RECORDED]]
    found = _second(subject, [*episodes, *chance])
    recorded = 0
    if not found:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "recording.jsonl")
            _record(subject, path, [*episodes[:_RECORDED], *chance])
            recorded = len(recorder.read(path))
            found = _from_recording(subject, path) or _elsewhere(subject, path)
    return verdict(
        not found,
        found
        or f"{len(episodes) + len(chance)} episodes are equal when played again, {recorded} when "
        f"played from their recording{_where(subject)}",
        "equal observations, rewards, ends and info for one task, seed and list of actions",
        "take all randomness from the generator that begin is given, never from time, global "
        "generators, the order of sets or an earlier episode",
    )


def _second(subject: Subject, episodes: list[Episode]) -> str:
    """Play the episodes in a second environment; return the first difference, or ""."""
    with closing(subject.make(oracle=True)) as other:
        for episode in episodes:
            again = subject.play(episode.start, repeated(episode), other)
            for turn, (one, two) in enumerate(zip(_turns(episode), _turns(again), strict=False)):
                if plain(one) != plain(two):
                    where = f"task {episode.start.task_id}, turn {turn}"
                    return f"{where}: {_apart(one, two)} in a second environment"
    return ""


def _turns(episode: Episode) -> list[dict[str, Any]]:
    rewards = [0.0, *episode.rewards]
    return [
        {**seen.info, "observation": seen.observation, "reward": reward, "last": last}
        for seen, reward, last in zip(
            episode.states, rewards, [*[False] * len(episode.actions), True], strict=True
        )
    ]


def _apart(one: dict[str, Any], two: dict[str, Any]) -> str:
    name = next(name for name in one if plain(one[name]) != plain(two.get(name)))
    return f"{name} is {shown(one[name]):.80}, and {shown(two.get(name)):.80}"


def _record(subject: Subject, path: Path, episodes: list[Episode]) -> None:
    with closing(RecordEpisodes(subject.make(), path, actor="certify")) as env:
        for episode in episodes:
            subject.play(episode.start, repeated(episode), env)


def _from_recording(subject: Subject, path: Path) -> str:
    with closing(subject.make()) as env:
        try:
            for recording in recorder.read(path):
                recorder.replay_in(env, recording)
        except Mismatch as e:
            return f"from a recording, {e}"
    return ""


def _elsewhere(subject: Subject, path: Path) -> str:
    """Replay the recording in a process of its own, where sets have another order."""
    if not _can_be_elsewhere(subject):
        return ""
    settings = [f"--set={name}={json.dumps(value)}" for name, value in subject.arguments.items()]
    done = subprocess.run(
        [sys.executable, "-m", "agentgyms", "replay", f"--env={subject.env_id}", *settings, path],
        env={**os.environ, "PYTHONHASHSEED": _HASH_SEED},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    last = (done.stderr.strip().splitlines() or ["no message"])[-1]
    return "" if done.returncode == 0 else f"from a recording, in another process: {last}"


def _can_be_elsewhere(subject: Subject) -> bool:
    """Return whether another process can make the environment here: its id says where it is."""
    named = ":" in subject.env_id or full_id(subject.env_id) in ENVIRONMENTS
    return named and not subject.is_remote


def _where(subject: Subject) -> str:
    return ", here and in another process" if _can_be_elsewhere(subject) else ", in this process"
