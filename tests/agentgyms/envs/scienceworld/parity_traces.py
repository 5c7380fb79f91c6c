"""Records traces of the real engine, and keeps them so that none is played twice."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from parity_policies import policy

from agentgyms.envs.scienceworld import worker
from agentgyms.envs.scienceworld.engine import Answer, Game, find_java, find_python
from agentgyms.processes.child import Child

CACHE = Path(os.environ.get("SCIENCEWORLD_TRACES", "build/scienceworld-traces"))
_GOLD_STEPS = 400


class Recorder:
    """The real engine, in a child that starts when it is first asked."""

    def __init__(self) -> None:
        self._child: Child | None = None

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer of the worker."""
        if self._child is None or not self._child.alive:
            environment = {**os.environ, "SCIENCEWORLD_WORKER": worker.__file__}
            environment.pop("PYTHONPATH", None)
            own = str(Path(__file__).with_name("parity_worker.py"))
            command = [find_python(), own, find_java()]
            self._child = Child(command, limit_s=900, environment=environment, kind="parity")
        return self._child.ask(request)

    def load(self, game: Game) -> Answer:
        """Start a game."""
        return Answer(**self.ask({"load": game, "list": True}))

    def step(self, command: str) -> Answer:
        """Take a turn."""
        return Answer(**self.ask({"step": command, "list": True}))

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.close()
        self._child = None


class Trace(NamedTuple):
    """A game of the real engine: what it answered to the load, and to each command."""

    game: Game
    commands: list[str]
    answers: list[Answer]


def path_of(game: Game, name: str, steps: int, seed: int) -> Path:
    """Return the file of a trace."""
    task, variation, simple = game
    folder = CACHE / task
    kind = name if name == "gold" else f"{name}-{steps}-{seed}"
    tail = f"-{simple.replace(',', '+')}" if simple else ""
    return folder / f"{variation}-{kind}{tail}.json.gz"


def find(game: Game, name: str, steps: int, seed: int) -> Trace | None:
    """Return a trace that was recorded earlier."""
    file = path_of(game, name, steps, seed)
    return read(file) if file.exists() else None


def read(file: Path) -> Trace:
    """Return the trace in a file."""
    with gzip.open(file, "rt", encoding="utf-8") as stream:
        told = json.load(stream)
    answers: list[Answer] = []
    for raw in told["answers"]:
        if raw["admissible"] is None:  # the same list as before
            raw["admissible"] = answers[-1].admissible
        answers.append(Answer(**raw))
    return Trace((told["task"], told["variation"], told["simple"]), told["commands"], answers)


def record(engine: Recorder, game: Game, name: str, steps: int, seed: int) -> Trace:
    """Return a trace, which the engine plays if it is not there."""
    found = find(game, name, steps, seed)
    if found is not None:
        return found
    choose = policy(name, seed, lambda: gold(engine, game))
    answers = [engine.load(game)]
    commands: list[str] = []
    limit = _GOLD_STEPS if name == "gold" else steps
    while len(commands) < limit:
        last = answers[-1]
        if last.completed or last.score < 0:
            break
        command = choose(last.admissible, last.observation)
        if command is None:
            break
        commands.append(command)
        answers.append(engine.step(command))
    trace = Trace(game, commands, answers)
    _keep(trace, path_of(game, name, steps, seed))
    return trace


def gold_file(game: Game) -> Path:
    """Return the file of a game's gold path."""
    return CACHE / game[0] / f"{game[1]}-path{'-' + game[2] if game[2] else ''}.json"


def gold(engine: Recorder, game: Game) -> Sequence[str]:
    """Return the gold path of a game, which is kept too."""
    file = gold_file(game)
    if not file.exists():
        _write(file, json.dumps(engine.ask({"gold": game})["gold"], indent=0).encode())
    path: list[str] = json.loads(file.read_text(encoding="utf-8"))
    return path


def _keep(trace: Trace, file: Path) -> None:
    task, variation, simple = trace.game
    answers: list[dict[str, Any]] = [answer._asdict() for answer in trace.answers]
    for before, answer, raw in zip(trace.answers, trace.answers[1:], answers[1:], strict=False):
        if answer.admissible == before.admissible:
            raw["admissible"] = None
    told = {
        "task": task,
        "variation": variation,
        "simple": simple,
        "commands": trace.commands,
        "answers": answers,
    }
    _write(file, gzip.compress(json.dumps(told).encode(), 6))


def _write(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f"{file.name}.{os.getpid()}.draft")
    draft.write_bytes(content)
    draft.replace(file)
