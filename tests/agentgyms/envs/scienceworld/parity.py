# ruff: noqa: T201 (a script tells what it finds)
"""Compares our engine with the real one, turn by turn; run as a script.

    python parity.py boil --variations dev:2 --policy random --steps 60 --seed 0

`--record` only records traces of the real engine, kept in build/scienceworld-traces. `--cached`
compares with the traces that are there, and starts no JVM.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[4]))

from parity_traces import (
    CACHE,
    Recorder,
    Trace,
    find,
    gold,
    gold_file,
    path_of,
    read,
    record,
)
from trace_digests import packed

from agentgyms.envs.scienceworld.engine import Game
from agentgyms.envs.scienceworld.tasks import SPLITS, VARIATIONS, numbers

_FIELDS = ("observation", "score", "completed", "moves", "goals", "task", "admissible", "key")


class Result(NamedTuple):
    """What a comparison of one trace found."""

    game: Game
    policy: str
    steps: int
    equal: int
    difference: str
    seconds: float


def main() -> int:
    """Compare or record the games that the arguments name, and print a table."""
    arguments = _arguments()
    if arguments.pack:
        _pack(arguments)
        return 0
    engine = Recorder()
    results: list[Result] = []
    if arguments.policy == "kept":
        results += [compare(read(file), file.name) for file in _kept(arguments)]
    for game, name, seed in () if results else _plan(arguments):
        if name == "path":
            results += _paths(engine, game, arguments)
            continue
        trace = _trace(engine, game, name, seed, arguments)
        if trace is None or arguments.record:
            continue
        results.append(compare(trace, name))
        if results[-1].difference and arguments.stop:
            break
    engine.close()
    for result in results:
        if result.difference:
            named = " ".join(map(str, result.game))
            print(f"== {named} {result.policy}\n{result.difference}\n")
    if not arguments.record:
        _table(results)
    return int(any(result.difference for result in results))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="+", help="names or beginnings of names of tasks, or `all`")
    parser.add_argument("--variations", default="dev:2", help="a split, a split:N, or 3,14,15")
    parser.add_argument(
        "--policy",
        default="random",
        help="random, directed, gold, mixed, path (the solutions); `,`",
    )
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0, help="of the policy")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds from --seed on")
    parser.add_argument("--simplifications", default="")
    parser.add_argument("--record", action="store_true", help="record traces, compare nothing")
    parser.add_argument("--pack", type=Path, help="write the cached traces as digests to a file")
    parser.add_argument("--cached", action="store_true", help="start no JVM")
    parser.add_argument("--share", default="0/1", help="of the traces kept, such as 0/4")
    parser.add_argument("--stop", action="store_true", help="stop at the first difference")
    return parser.parse_args()


def _pack(arguments: argparse.Namespace) -> None:
    kept = {}
    for game, name, seed in _plan(arguments):
        trace = find(game, name, arguments.steps, seed)
        if trace is not None:
            kept[f"{game[0]}/{game[1]} {name}"] = packed(trace)
    # A line a trace, so that a change of one shows.
    lines = [f"{json.dumps(name)}: {json.dumps(trace)}" for name, trace in kept.items()]
    arguments.pack.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _plan(arguments: argparse.Namespace) -> Iterator[tuple[Game, str, int]]:
    tasks = _tasks(arguments)
    depth = max((len(_chosen(task, arguments.variations)) for task in tasks), default=0)
    for seed in range(arguments.seed, arguments.seed + arguments.seeds):
        for place in range(depth):  # the first variations of all tasks come first
            for task in tasks:
                chosen = _chosen(task, arguments.variations)
                for name in arguments.policy.split(","):
                    if place < len(chosen) and (
                        name not in ("gold", "path") or seed == arguments.seed
                    ):
                        yield (task, chosen[place], arguments.simplifications), name, seed


def _tasks(arguments: argparse.Namespace) -> list[str]:
    wanted = arguments.tasks
    if wanted == ["all"]:
        return list(VARIATIONS)
    return [
        name
        for name in VARIATIONS
        if any(name == w or (name.startswith(w) and w not in VARIATIONS) for w in wanted)
    ]


def _kept(arguments: argparse.Namespace) -> Iterator[Path]:
    """Return the files of all traces of the tasks, in a share of them such as 0/4."""
    part, _, parts = arguments.share.partition("/")
    files = [file for task in _tasks(arguments) for file in sorted((CACHE / task).glob("*.gz"))]
    yield from files[int(part) :: int(parts)]


def _chosen(task: str, text: str) -> list[int]:
    split, _, count = text.partition(":")
    if split in SPLITS:
        return list(numbers(task, split))[: int(count) if count else None]
    return [int(number) for number in text.split(",") if int(number) < VARIATIONS[task]]


def _trace(
    engine: Recorder, game: Game, name: str, seed: int, arguments: argparse.Namespace
) -> Trace | None:
    if arguments.cached:
        return find(game, name, arguments.steps, seed)
    if arguments.record and path_of(game, name, arguments.steps, seed).exists():
        return None
    began = time.monotonic()
    try:
        trace = record(engine, game, name, arguments.steps, seed)
    except Exception as e:
        print(f"!! {game} {name}: {type(e).__name__}: {e}", flush=True)
        engine.close()
        return None
    if arguments.record:
        seconds = time.monotonic() - began
        last = trace.answers[-1]
        print(
            f"{game[0]} {game[1]} {name} {seed}: {len(trace.commands)} steps, {seconds:.0f} s, "
            f"score {last.score}",
            flush=True,
        )
    return trace


def _paths(engine: Recorder, game: Game, arguments: argparse.Namespace) -> list[Result]:
    """Compare the solutions that both engines find, if the real one's is there or wanted."""
    if arguments.cached and not gold_file(game).exists():
        return []
    theirs = list(gold(engine, game))
    if arguments.record:
        return []
    from agentgyms.envs.scienceworld.own.game import Game as Own

    began = time.monotonic()
    try:
        ours = list(Own(*game).gold_actions()[0])
        difference = "" if ours == theirs else _diff(theirs, ours)
    except Exception:
        ours, difference = [], "".join(traceback.format_exc().splitlines(keepends=True)[-12:])
    same = sum(a == b for a, b in zip(theirs, ours, strict=False))
    return [Result(game, "path", len(theirs), same, difference, time.monotonic() - began)]


def compare(trace: Trace, name: str) -> Result:
    """Play a trace's commands on our engine, up to the first difference."""
    from agentgyms.envs.scienceworld.own.game import Game as Own

    began = time.monotonic()
    equal, difference = 0, ""
    try:
        own = Own(*trace.game)
        for turn, answer in enumerate(trace.answers):
            command = trace.commands[turn - 1] if turn else "(load)"
            # As the worker does, the load is followed by a look.
            observation = own.step(trace.commands[turn - 1] if turn else "look around")
            difference = _difference(own, observation, answer._asdict())
            if difference:
                difference = f"turn {turn} of {len(trace.commands)}: {command!r}\n{difference}"
                break
            equal += 1
    except Exception:
        command = trace.commands[equal - 1] if equal else "(load)"
        difference = f"turn {equal} of {len(trace.commands)}: {command!r} raised\n" + "".join(
            traceback.format_exc().splitlines(keepends=True)[-24:]
        )
    seconds = time.monotonic() - began
    return Result(trace.game, name, len(trace.answers), equal, difference, seconds)


def _difference(own: Any, observation: str, theirs: dict[str, Any]) -> str:
    if theirs["failed"]:
        return ""  # the real engine raised an error at this command: worker.py says which
    ours = {
        "observation": observation,
        "score": own.score,
        "completed": own.completed,
        "moves": own.moves,
        "goals": own.goal_progress(),
        "task": own.task_description(),
        "admissible": None,
        "key": str(own.world.random.state),
    }
    for field in _FIELDS:
        left = theirs[field]
        right = sorted(set(own.valid_actions())) if field == "admissible" else ours[field]
        if left != right:
            return f"{field} differs (- real, + ours):\n{_diff(left, right)}"
    return ""


def _diff(left: Any, right: Any) -> str:
    if not isinstance(left, str | list):
        return f"- {left!r}\n+ {right!r}"
    before = left.splitlines() if isinstance(left, str) else left
    after = right.splitlines() if isinstance(right, str) else right
    lines = [
        line
        for line in difflib.ndiff(before, after)
        if line.startswith(("-", "+", "?"))
    ]  # fmt: skip
    return "\n".join(lines[:30]) or f"- {left!r}\n+ {right!r}"


def _table(results: list[Result]) -> None:
    if not results:
        print("no trace")
        return
    print(f"{'task':48} {'traces':>6} {'equal':>6} {'turns':>7} {'equal turns':>11} {'ms/turn':>8}")
    for task in sorted({result.game[0] for result in results}):
        mine = [result for result in results if result.game[0] == task]
        good = sum(not result.difference for result in mine)
        turns, equal = sum(r.steps for r in mine), sum(r.equal for r in mine)
        pace = 1000 * sum(r.seconds for r in mine) / max(1, equal)
        print(f"{task:48} {len(mine):6} {good:6} {turns:7} {equal:11} {pace:8.2f}")
    good = sum(not result.difference for result in results)
    print(f"{good} of {len(results)} traces without a difference")


if __name__ == "__main__":
    sys.exit(main())
