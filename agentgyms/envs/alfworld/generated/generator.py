"""Generates household tasks; the id alone determines a task."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import count
from typing import Final

from agentgyms.core.randomness import Chance
from agentgyms.core.tasks import Task
from agentgyms.envs.alfworld.generated.catalogue import FURNITURE, THINGS
from agentgyms.envs.alfworld.generated.layouts import FloorPlan, floor_plans
from agentgyms.envs.alfworld.problem import FAMILIES, Fact, Goal, Problem

COUNTS: Final = {"train": 600, "valid_seen": 40, "valid_unseen": 40, "sample": 2}
"""Number of tasks of each family, by split."""

VERSION: Final = "2"
"""Increase it whenever a task id maps to another task or sentence."""

_SEED: Final = "1"

_NUM_THINGS: Final = {"small": (3, 5), "large": (14, 22)}
_TOOLS: Final = {"clean": "SinkBasin", "heat": "Microwave", "cool": "Fridge"}
_FAR: Final = 4
"""In large rooms, the objects of a task are in one of this many last possible places."""

_CLASSES: Final = 16
"""Number of classes of contents; the first two are valid_seen and sample, the rest train."""

_SENTENCES: Final = {
    "pick": ("put {a_thing} {in_a_place}.", "bring {a_thing} to {a_place}."),
    "look": ("look at {a_thing} under {a_place}.", "hold {a_thing} under {a_place}."),
    "clean": ("put {a_clean_thing} {in_a_place}.", "wash {a_thing} and put it {in_a_place}."),
    "heat": ("put {a_hot_thing} {in_a_place}.", "warm up {a_thing} and put it {in_a_place}."),
    "cool": ("put {a_cold_thing} {in_a_place}.", "chill {a_thing} and put it {in_a_place}."),
    "pick2": (
        "put {a_thing} {in_a_place}, then {another}.",
        "bring {a_thing} to {a_place}, then {another}.",
    ),
}


@dataclass(frozen=True, slots=True)
class Household:
    """A task's contents; `stored` has objects, each with the number of its receptacle.

    `inner` has pairs of numbers in `stored`: the first is in the second, a vessel. `place` is the
    target's type of receptacle, or that of the lamp. `wording` selects the family's sentence.
    """

    plan: FloorPlan
    stored: tuple[tuple[str, int], ...]
    inner: tuple[tuple[int, int], ...]
    family: str
    target: str
    place: str
    wording: int

    @property
    def content(self) -> str:
        """Digest of room, objects and goal; equal for equal tasks, whatever their id."""
        parts = (self.plan.furniture, self.plan.places, self.stored, self.inner)
        text = repr((*parts, self.family, self.target, self.place))
        return blake2b(text.encode(), digest_size=16).hexdigest()


def list_tasks(size: str, split: str) -> list[Task]:
    """Return the tasks of a split, such as `small-train-heat-0042`; nothing is generated yet."""
    return [
        Task(f"{size}-{split}-{family}-{index:04d}", family)
        for family in FAMILIES
        for index in range(COUNTS[split])
    ]


@lru_cache(maxsize=512)
def household(task_id: str) -> Household:
    """Return the contents of the task with this id, one of `list_tasks`."""
    size, split, family, _ = task_id.split("-")
    for attempt in count():
        made = _furnished(size, split, family, Chance(_SEED, task_id, attempt))
        if made is not None and (split == "valid_unseen" or _split_of(made) == split):
            return made
    raise AssertionError("unreachable")


def _split_of(made: Household) -> str:
    """Return the split of contents in a training room; splits never overlap."""
    number = int(made.content, 16) % _CLASSES
    return ("valid_seen", "sample")[number] if number < 2 else "train"


def _furnished(size: str, split: str, family: str, chance: Chance) -> Household | None:
    """Return a random household for a task of this family, or None if the draw fails."""
    plans = floor_plans(size, seen=split != "valid_unseen")
    plan = chance.pick([plan for plan in plans if family in plan.room.families])
    targets = list(plan.room.things)
    if family in _TOOLS:
        targets = [name for name in targets if f"{family}able" in THINGS[name].traits]
    target = chance.pick(targets)
    place = chance.pick(_destinations(plan, family, target) or ("",))
    homes = [r for r in _homes(plan, target) if plan.furniture[r] != place]
    if size == "large":
        homes = homes[-_FAR:]
    if not place or not homes:
        return None
    stored = [(target, chance.pick(homes)) for _ in range(2 if family == "pick2" else 1)]
    if family == "look":
        stored.append((place, chance.pick(_homes(plan, place))))
    # Objects that the task does not need; in small rooms no two of a type.
    number = chance.between(*_NUM_THINGS[size]) - len(stored)
    kinds = [name for name in plan.room.things if name != target and _homes(plan, name)]
    if size == "small":
        drawn = chance.sample(kinds, number)
    else:
        drawn = [chance.pick(kinds) for _ in range(number)]
    stored += [(name, chance.pick(_homes(plan, name))) for name in drawn]
    stored.sort()
    inner = _inner(stored, chance) if size == "large" else ()
    return Household(plan, tuple(stored), inner, family, target, place, chance.below(2))


def _destinations(plan: FloorPlan, family: str, target: str) -> list[str]:
    """Return the types of receptacle, or of lamp, that a task can name."""
    if family == "look":
        return ["DeskLamp", "FloorLamp"]
    homes = {plan.furniture[r] for r in _homes(plan, target)}
    return sorted(homes - {_TOOLS.get(family, "")})


def _homes(plan: FloorPlan, thing: str) -> list[int]:
    sort = THINGS[thing].sort
    return [r for r, name in enumerate(plan.furniture) if sort in FURNITURE[name].holds]


def _inner(stored: list[tuple[str, int]], chance: Chance) -> tuple[tuple[int, int], ...]:
    """Return at most one object inside a container in the same receptacle."""
    pairs = [
        (i, j)
        for j, (vessel, there) in enumerate(stored)
        for i, (thing, here) in enumerate(stored)
        if here == there
        and "vessel" in THINGS[vessel].traits
        and THINGS[thing].sort in ("cutlery", "paper")
    ]
    return (chance.pick(pairs),) if pairs and chance.below(2) else ()


def generate(task_id: str) -> Problem:
    """Return the task with this id, one of `list_tasks`, as a planning problem."""
    made = household(task_id)
    facts: dict[str, list[Fact]] = {"atlocation": [("agent1", "loc_bar_00")]}

    def add(predicate: str, *arguments: str) -> None:
        facts.setdefault(predicate, []).append(arguments)

    pieces = [_furniture_id(name, r) for r, name in enumerate(made.plan.furniture)]
    for r, name in enumerate(made.plan.furniture):
        add("receptacletype", pieces[r], f"{name.lower()}type")
        add("receptacleatlocation", pieces[r], f"loc_bar_{made.plan.places[r]:02d}")
        if FURNITURE[name].openable:
            add("openable", pieces[r])
    things = [f"{name.lower()}_bar_{i:02d}" for i, (name, _) in enumerate(made.stored)]
    for thing, (name, r) in zip(things, made.stored, strict=True):
        add("objecttype", thing, f"{name.lower()}type")
        add("inreceptacle", thing, pieces[r])
        add("objectatlocation", thing, f"loc_bar_{made.plan.places[r]:02d}")
        traits = THINGS[name].traits
        renamed = {"vessel": "isreceptacleobject", "lamp": "toggleable"}
        properties = [renamed.get(trait, trait) for trait in sorted(traits)]
        for predicate in properties if "lamp" in traits else ["pickupable", *properties]:
            add(predicate, thing)
    for i, j in made.inner:
        add("inreceptacleobject", things[i], things[j])
    for place in sorted(set(made.plan.furniture)):
        for name in sorted({name for name, _ in made.stored}):
            if THINGS[name].sort in FURNITURE[place].holds:
                add("cancontain", f"{place.lower()}type", f"{name.lower()}type")
    goal = Goal(made.family, made.target.lower(), made.place.lower())
    known = {predicate: tuple(listed) for predicate, listed in facts.items()}
    return Problem(known, goal, _sentence(made))


def _furniture_id(name: str, number: int) -> str:
    """Return an id; the game's naming wants `sink_bar_03_bar_sinkbasin` for a basin."""
    kind = name.lower()
    if kind.endswith("basin"):
        return f"{kind.removesuffix('basin')}_bar_{number:02d}_bar_{kind}"
    return f"{kind}_bar_{number:02d}"


def _sentence(made: Household) -> str:
    thing, a_place = THINGS[made.target], _indefinite(made.place.lower())
    name, article = thing.name.lower(), "some" if thing.mass else ""
    adjectives = {f"a_{word}_thing": f"{word} {name}" for word in ("clean", "hot", "cold")}
    phrases = {"a_thing": name, **adjectives}
    word = FURNITURE[made.place].word if made.place in FURNITURE else ""
    return _SENTENCES[made.family][made.wording].format(
        **{key: _indefinite(phrase, article) for key, phrase in phrases.items()},
        another="some more" if thing.mass else "another one",
        a_place=a_place,
        in_a_place=f"{word} {a_place}",
    )


def _indefinite(phrase: str, article: str = "") -> str:
    """Return a phrase with its indefinite article, such as `an apple` or `some bread`."""
    return f"{article or ('an' if phrase[0] in 'aeiou' else 'a')} {phrase}"
