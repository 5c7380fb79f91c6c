# ruff: noqa: T201 (a script tells what it finds)
"""Compares the objects of both engines after some turns of a recorded trace; run as a script.

    python parity_tree.py boil 14 random 60 0 --turn 12

It starts a JVM, and plays the trace's commands up to the turn.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[4]))

from parity_traces import Recorder, find

from agentgyms.envs.scienceworld.own.game import Game as Own


def main() -> None:
    """Print the first lines in which the trees differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, kind in (("task", str), ("variation", int), ("policy", str)):
        parser.add_argument(name, type=kind)
    parser.add_argument("steps", type=int, nargs="?", default=60)
    parser.add_argument("seed", type=int, nargs="?", default=0)
    parser.add_argument("--turn", type=int, required=True)
    parser.add_argument("--simplifications", default="")
    parser.add_argument("--lines", type=int, default=40)
    parser.add_argument("--order", action="store_true", help="print the names in both orders")
    arguments = parser.parse_args()
    game = (arguments.task, arguments.variation, arguments.simplifications)
    trace = find(game, arguments.policy, arguments.steps, arguments.seed)
    assert trace is not None, "no such trace: record it with parity.py"
    engine, own = Recorder(), Own(*game)
    engine.load(game)
    own.step("look around")
    for command in trace.commands[: arguments.turn]:
        engine.step(command)
        own.step(command)
    theirs = list(_lines(engine.ask({"tree": True})["tree"], ""))
    ours = list(_own_lines(own.universe, ""))
    engine.close()
    shown = 0
    for left, right in zip(theirs, ours, strict=False):
        if left != right or arguments.order:
            print(f"- {left}\n+ {right}")
            shown += 1
            if shown >= arguments.lines:
                break
    print(f"{len(theirs)} objects in the real engine, {len(ours)} in ours")


def _lines(obj: dict[str, Any], indent: str) -> Iterator[str]:
    """Return a line for each object, in order, with what it is like."""
    material, life = obj["propMaterial"] or {}, obj["propLife"] or {}
    told = [material.get("temperatureC"), material.get("stateOfMatter"), life.get("isDead")]
    container, device = obj["propContainer"] or {}, obj["propDevice"] or {}
    told += [container.get("isOpen"), device.get("isActivated")]
    yield f"{indent}{obj['name']} {told}"
    for inside in obj["contents"].values():
        yield from _lines(inside, indent + " ")


def _own_lines(obj: Any, indent: str) -> Iterator[str]:
    material, life = obj.prop_material, obj.prop_life
    told = [
        material and material.temperature_c,
        material and material.state_of_matter,
        life and life.is_dead,
        obj.prop_container and obj.prop_container.is_open,
        obj.prop_device and obj.prop_device.is_activated,
    ]
    yield f"{indent}{obj.name} {told}"
    for inside in obj.contained_objects():
        yield from _own_lines(inside, indent + " ")


if __name__ == "__main__":
    main()
