"""Small hand-made households for tests, written in one line per receptacle.

    shelf_bar_1 at a: mug_bar_1 mug_bar_2
    drawer_bar_1 at b, closed: fork_bar_1
    on the floor at a: tomato_bar_1

Every type of receptacle holds every type of thing, unless `without` says otherwise.
"""

from __future__ import annotations

from agentgyms.envs.alfworld.builder import build_game
from agentgyms.envs.alfworld.engine import State
from agentgyms.envs.alfworld.problem import Fact, Goal, Problem
from agentgyms.envs.alfworld.text import NOTHING_HAPPENS

PROPERTIES = {
    "mug": "pickupable cleanable heatable coolable",
    "fork": "pickupable cleanable",
    "knife": "pickupable cleanable",
    "tomato": "pickupable cleanable heatable coolable sliceable",
    "pan": "pickupable cleanable coolable isreceptacleobject",
    "book": "pickupable",
    "desklamp": "toggleable",
    "floorlamp": "toggleable",
    "statue": "",
}

PICK_MUG = Goal("pick", "mug", "safe")


class House:
    """Collects the facts of a household."""

    def __init__(self, text: str, without: set[tuple[str, str]], start: str) -> None:
        self.facts: dict[str, list[Fact]] = {}
        self.add("atlocation", "agent1", start)
        for line in filter(None, map(str.strip, text.splitlines())):
            self.line(line)
        receptacle_types = {fact[1] for fact in self.facts["receptacletype"]}
        thing_types = {fact[1] for fact in self.facts.get("objecttype", ())}
        for place in sorted(receptacle_types):
            for thing in sorted(thing_types):
                if (place.removesuffix("type"), thing.removesuffix("type")) not in without:
                    self.add("cancontain", place, thing)

    def add(self, predicate: str, *arguments: str) -> None:
        """Add a fact once."""
        known = self.facts.setdefault(predicate, [])
        if arguments not in known:
            known.append(arguments)

    def line(self, line: str) -> None:
        """Read one line of the household."""
        place, _, things = line.partition(":")
        name, _, rest = place.partition(" at ")
        location, *doors = rest.replace(",", "").split()
        if name != "on the floor":
            kind = name.rpartition("_bar_")[2] if "basin" in name else name.partition("_bar_")[0]
            self.add("receptacletype", name, f"{kind}type")
            self.add("receptacleatlocation", name, location)
            for door in doors:
                self.add("openable", name)
                if door == "open":
                    self.add("opened", name)
        for thing in things.split():
            kind = thing.partition("_bar_")[0]
            self.add("objecttype", thing, f"{kind}type")
            self.add("objectatlocation", thing, location)
            if name != "on the floor":
                self.add("inreceptacle", thing, name)
            for predicate in PROPERTIES[kind].split():
                self.add(predicate, thing)


def problem(
    text: str,
    goal: Goal = PICK_MUG,
    *,
    without: set[tuple[str, str]] | None = None,
    start: str = "middle",
    facts: str = "",
) -> Problem:
    """Return the household that `text` describes; `facts` adds more, separated by commas."""
    house = House(text, without or set(), start)
    for fact in filter(None, map(str.strip, facts.split(","))):
        house.add(*fact.split())
    known = {predicate: tuple(listed) for predicate, listed in house.facts.items()}
    return Problem(known, goal, "do something.")


def play(text: str, goal: Goal = PICK_MUG, **details) -> State:
    """Return the household ready to be played."""
    return State(build_game(problem(text, goal, **details), "tiny"))


def do(state: State, *commands: str) -> str:
    """Take turns and return what the last one shows."""
    answer = ""
    for command in commands:
        move = state.find(command)
        answer = NOTHING_HAPPENS if move is None else state.perform(move)
    return answer
