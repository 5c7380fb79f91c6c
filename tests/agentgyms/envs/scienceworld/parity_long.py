# ruff: noqa: T201 (a script tells what it finds)
"""Compares long games of our engine with the real one's, and keeps the results; run as a script.

    python parity_long.py --results build/scienceworld-parity.jsonl --minutes 80

Our engine plays first and chooses the commands; the real one then gets them in batches, through
ParityJar.java, which needs a JDK. The first game of all tasks comes first, then the second of all,
until each task has its steps. Games that the results have are not played again, unless `--again`
names those that differed. `--table` only prints the table of the results.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[4]))

from parity_jar import LISTED, Jar
from parity_policies import policy

from agentgyms.core.errors import BadOption
from agentgyms.envs.scienceworld.own.game import Game
from agentgyms.envs.scienceworld.own.jvm import JavaError, double_text
from agentgyms.envs.scienceworld.tasks import VARIATIONS, check_simplification, numbers

_FIELDS: Final = ("observation", "score", "completed", "moves", "goals", "generator", "valid")
_SPLITS: Final = ("dev",) * 10 + ("train",) * 8 + ("test",) * 7
_POLICIES: Final = (
    "loose", "directed", "loose", "mixed", "loose", "lab", "loose", "mixed",
    "loose", "odd", "loose", "mixed", "loose", "odd", "loose", "mixed",
)  # fmt: skip
_SIMPLE: Final = (
    "easy", "openDoors,teleportAction", "openContainers", "noElectricalAction",
    "selfWateringFlowerPots", "easy", "noElectricalAction,openContainers,openDoors",
)  # fmt: skip
_UNFOCUSED: Final = 0.85  # the part of a game without a focus, since a wrong one ends it


class Plan(NamedTuple):
    """A game to play: all that its commands depend on."""

    task: str
    variation: int
    simplifications: str
    policy: str
    seed: int


class Played(NamedTuple):
    """Our side of a game: the commands, and the fields of each turn, as text."""

    plan: Plan
    commands: list[str]
    turns: list[list[str]]
    raised: str


def main() -> int:
    """Play the games that the results lack, and print the table."""
    arguments = _arguments()
    if not arguments.table:
        arguments.results.parent.mkdir(parents=True, exist_ok=True)
        code = _code()
        with ThreadPoolExecutor(1) as pool, Jar() as jar:
            waiting: tuple[Played, Future[list[list[str]]]] | None = None
            for plan in _plans(arguments):
                played = _play(plan, arguments.length)
                if waiting is not None:
                    _keep(*waiting, code, arguments.results)
                # The real engine plays this game while ours plays the next one.
                waiting = played, pool.submit(jar.play, plan[:3], played.commands)
            if waiting is not None:
                _keep(*waiting, code, arguments.results)
    return _table(_read(arguments.results))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", help="names of tasks, or their beginnings; none: all")
    parser.add_argument(
        "--results", type=Path, default=Path("build/scienceworld-parity.jsonl"), help="JSON lines"
    )
    parser.add_argument("--steps", type=int, default=5000, help="of a task")
    parser.add_argument("--length", type=int, default=200, help="of a game, in steps")
    parser.add_argument("--minutes", type=float, default=1e6, help="start no game after them")
    parser.add_argument("--again", action="store_true", help="play the games that differed again")
    parser.add_argument("--table", action="store_true", help="play nothing")
    return parser.parse_args()


def _plans(arguments: argparse.Namespace) -> Iterator[Plan]:
    """Return the games to play: breadth first, and again those that differed, if wanted."""
    end = time.monotonic() + 60 * arguments.minutes
    tasks = [t for t in VARIATIONS if not arguments.tasks or t.startswith(tuple(arguments.tasks))]
    if arguments.again:
        results = _read(arguments.results).items()
        yield from (plan for plan, line in results if line["difference"] and plan.task in tasks)
        return
    for turn in range(10 * arguments.steps // arguments.length):  # many, where games end early
        known = _read(arguments.results)
        done = Counter[str]()
        for plan, line in known.items():
            done[plan.task] += line["steps"]
        left = [task for task in tasks if done[task] < arguments.steps]
        if not left:
            return
        for plan in (_plan(task, turn) for task in left):
            if time.monotonic() > end:
                return
            if plan not in known:
                yield plan


def _plan(task: str, turn: int) -> Plan:
    variations = numbers(task, _SPLITS[turn % len(_SPLITS)])
    spread = turn * 0.618034 % 1  # far from the ones before it, wherever the turns end
    simplifications = ""
    if turn % 5 == 4:
        try:
            simplifications = check_simplification(_SIMPLE[turn // 5 % len(_SIMPLE)], (task,))
        except BadOption:  # one that leaves this task without a solution
            simplifications = "easy"
    name = _POLICIES[turn % len(_POLICIES)]
    return Plan(task, variations[int(spread * len(variations))], simplifications, name, turn)


# --- our engine ----------------------------------------------------------------------------------


def _play(plan: Plan, length: int) -> Played:
    commands, turns = ["look around"], []
    try:
        own = Game(*plan[:3])
        turns.append(_turn(own, "look around", True))
        for command in _commands(own, plan, length, turns):
            commands.append(command)
            turns.append(_turn(own, command, len(turns) % LISTED == 0))
    except Exception:
        return Played(plan, commands, turns, traceback.format_exc()[-400:])
    return Played(plan, commands, turns, "")


def _commands(own: Game, plan: Plan, length: int, turns: list[list[str]]) -> Iterator[str]:
    """Return commands, up to the end of the task, or the length."""
    choose = policy(plan.policy, plan.seed, lambda: Game(*plan[:3]).gold_actions()[0])
    source = random.Random(str(plan))
    for number in range(length):
        actions = own.valid_actions()
        if number < _UNFOCUSED * length or source.random() < 0.8:
            actions = [a for a in actions if not a.startswith("focus on")]
        command = choose(actions, turns[-1][0])
        if command is None or own.completed or own.score < 0:
            return
        yield command


def _turn(own: Game, command: str, listed: bool) -> list[str]:
    try:
        observation = own.step(command)
    except JavaError as e:
        observation = f"raised: {e}"
    state = (own.score, own.completed, own.moves)
    valid = "\n".join(own.valid_actions()) if listed else ""
    told = [double_text(state[0]), str(state[1]).lower(), str(state[2])]
    return [observation, *told, own.goal_progress(), str(own.world.random.state), valid]


# --- the results ---------------------------------------------------------------------------------


def _keep(played: Played, answer: Future[list[list[str]]], code: str, results: Path) -> None:
    """Write a line with the game's result."""
    theirs, difference, steps = answer.result(), played.raised, len(played.turns) - 1
    for number, (mine, real) in enumerate(zip(played.turns, theirs, strict=False)):
        if mine != real:
            difference = f"turn {number}: {played.commands[number]!r}: {_short(real, mine)}"
            steps = max(0, number - 1)
            break
    else:
        if len(theirs) != len(played.commands):
            difference = difference or f"{len(theirs)} turns of {len(played.commands)}"
    told: dict[str, Any] = {**played.plan._asdict(), "steps": steps}
    told |= {"listed": steps // LISTED + 1, "difference": difference, "code": code}
    with results.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(told) + "\n")
    if difference:
        print(f"== {' '.join(map(str, played.plan))}\n{difference}", flush=True)


def _code() -> str:
    """Return a digest of our engine's sources, as they are at the start."""
    folder = Path(__file__).parents[4] / "agentgyms/envs/scienceworld/own"
    digest = hashlib.blake2b(digest_size=4)
    for file in sorted(folder.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _short(real: list[str], mine: list[str]) -> str:
    field = next(n for n, (a, b) in enumerate(zip(real, mine, strict=True)) if a != b)
    before, after = real[field].split("\n"), mine[field].split("\n")
    left = [line for line in before if line not in after] or before
    right = [line for line in after if line not in before] or after
    texts = ("\n".join(lines)[:300] for lines in (left, right))
    return f"{_FIELDS[field]}\n- {next(texts)}\n+ {next(texts)}"


def _read(results: Path) -> dict[Plan, dict[str, Any]]:
    """Return the last result of each game."""
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    told = [json.loads(line) for line in lines]
    return {Plan(*(line[name] for name in Plan._fields)): line for line in told}


def _table(results: dict[Plan, dict[str, Any]]) -> int:
    print(f"{'task':48} {'games':>6} {'steps':>7} {'lists':>6} {'differing games':>15}")
    for task in (*(t for t in VARIATIONS if any(p.task == t for p in results)), "all"):
        mine = [line for plan, line in results.items() if task in ("all", plan.task)]
        steps, lists = sum(r["steps"] for r in mine), sum(r["listed"] for r in mine)
        bad = sum(bool(r["difference"]) for r in mine)
        print(f"{task:48} {len(mine):6} {steps:7} {lists:6} {bad:15}")
    return int(any(line["difference"] for line in results.values()))


if __name__ == "__main__":
    sys.exit(main())
