"""Records what the official engine answers, as the golden traces of the tests.

    AGENTGYMS_ALFWORLD_PYTHON=... python tests/agentgyms/envs/alfworld/record_golden.py

Run it again only when a rule or a wording is meant to change: a difference is a decision. Takes
some minutes. Writes `tests/golden/alfworld_generated.jsonl.gz`, walks through generated games, and
`tests/golden/alfworld_quirks.jsonl.gz`, walks through hand-made households.
"""

from __future__ import annotations

import random
from typing import Any

from alfworld_traces import GOLDEN, answer, start, write_traces
from alfworld_walks import walk
from alfworld_worlds import problem

from agentgyms.envs.alfworld.generated import generator
from agentgyms.envs.alfworld.generated.writer import game_fields
from agentgyms.envs.alfworld.official.engine import OfficialEngine
from agentgyms.envs.alfworld.problem import FAMILIES, Goal, Problem

NUM_STEPS = 40

MUG_IN_SAFE = Goal("pick", "mug", "safe")
ROOM = "safe_bar_1 at s: book_bar_9\n"

QUIRKS: dict[str, Problem] = {
    "neighbours": problem(
        "desk_bar_1 at a: mug_bar_1 knife_bar_1\n drawer_bar_1 at a, closed: tomato_bar_1\n"
        f"shelf_bar_1 at a: book_bar_1\n {ROOM}"
    ),
    "two homes apart": problem(
        f"desk_bar_1 at a: mug_bar_1\n drawer_bar_1 at b: mug_bar_1 book_bar_1\n {ROOM}"
    ),
    "two homes together": problem(
        "desk_bar_1 at a: mug_bar_1 tomato_bar_1\n drawer_bar_1 at a: mug_bar_1 tomato_bar_1\n"
        f"shelf_bar_1 at a: knife_bar_1\n {ROOM}"
    ),
    "no way back": problem(
        f"desk_bar_1 at a: mug_bar_1 book_bar_1\n shelf_bar_1 at a: fork_bar_1\n {ROOM}",
        without={("desk", "mug"), ("desk", "book"), ("shelf", "book")},
    ),
    "lamps": problem(
        "desk_bar_1 at a: desklamp_bar_1 mug_bar_1\n shelf_bar_1 at a: desklamp_bar_1\n"
        "drawer_bar_1 at b, closed: desklamp_bar_2\n on the floor at b: floorlamp_bar_1\n",
        Goal("look", "mug", "desklamp"),
    ),
    "floor": problem(
        f"desk_bar_1 at a: knife_bar_1 mug_bar_1\n on the floor at a: tomato_bar_1\n"
        f"fridge_bar_1 at b, closed: tomato_bar_2\n on the floor at c: tomato_bar_3\n {ROOM}"
    ),
    "vessels": problem(
        f"sink_bar_1_bar_sinkbasin at a: pan_bar_1 fork_bar_1 book_bar_1 mug_bar_1\n {ROOM}",
        facts="inreceptacleobject fork_bar_1 pan_bar_1, inreceptacleobject book_bar_1 pan_bar_1,"
        "inreceptacleobject pan_bar_1 pan_bar_1",
    ),
    "first place": problem(f"desk_bar_1 at a: mug_bar_1\n shelf_bar_1 at a:\n {ROOM}", start="a"),
    "treatments": problem(
        "microwave_bar_1 at a, closed: mug_bar_1\n fridge_bar_1 at b, open: tomato_bar_1\n"
        f"sink_bar_1_bar_sinkbasin at c: mug_bar_2 fork_bar_1 knife_bar_1\n {ROOM}",
        Goal("heat", "mug", "safe"),
        facts="iscool mug_bar_1, isclean fork_bar_1",
    ),
    "fixed": problem(
        f"desk_bar_1 at a: statue_bar_1 mug_bar_1 mug_bar_2\n {ROOM}", Goal("pick2", "mug", "safe")
    ),
    "cleaning": problem(
        "sink_bar_1_bar_sinkbasin at a: mug_bar_1\n sink_bar_2_bar_sinkbasin at a: fork_bar_1\n"
        f"bathtub_bar_3_bar_bathtubbasin at b: mug_bar_2\n {ROOM}",
        Goal("clean", "mug", "safe"),
    ),
    "cooling": problem(
        f"fridge_bar_1 at a, closed: mug_bar_1 pan_bar_1\n fridge_bar_2 at b, closed:\n {ROOM}",
        Goal("cool", "mug", "safe"),
    ),
}


def main() -> None:
    """Record both files."""
    engine = OfficialEngine()
    GOLDEN.mkdir(exist_ok=True)
    quirks = [_record(engine, name, household) for name, household in QUIRKS.items()]
    write_traces(GOLDEN / "alfworld_quirks.jsonl.gz", quirks)
    generated = [
        _record(engine, task_id, generator.generate(task_id))
        for rooms, number in (("small", 5), ("large", 4))
        for family in FAMILIES
        for task_id in [f"{rooms}-train-{family}-{index:04d}" for index in range(number)]
    ]
    write_traces(GOLDEN / "alfworld_generated.jsonl.gz", generated)
    engine.close()


def _record(engine: OfficialEngine, name: str, household: Problem) -> dict[str, Any]:
    fields = game_fields(household, "golden")
    state, mine = start(fields)
    steps = [["", *engine.load(fields)]]
    for action in walk(state, random.Random(name), NUM_STEPS):
        mine = answer(state, action)
        steps.append([action, *engine.step(action)])
        if mine != dict(zip(("observation", "admissible", "won"), steps[-1][1:], strict=True)):
            print(f"{name}: the engines differ after {action!r}")  # noqa: T201
            break
    return {
        "name": name,
        "problem": fields["pddl_problem"],
        "sentence": household.sentence,
        "steps": steps,
    }


if __name__ == "__main__":
    main()
