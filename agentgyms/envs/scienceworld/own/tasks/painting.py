"""Mixing paint of a secondary or a tertiary color."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentgyms.envs.scienceworld.own.goals.base import Goal
from agentgyms.envs.scienceworld.own.goals.contents import GoalObjectsInSingleContainer
from agentgyms.envs.scienceworld.own.goals.finds import GoalFind
from agentgyms.envs.scienceworld.own.goals.places import (
    GoalInRoomWithObject,
    GoalMoveToLocation,
    GoalMoveToNewLocation,
)
from agentgyms.envs.scienceworld.own.objects.base import EnvObject
from agentgyms.envs.scienceworld.own.objects.containers import (
    GlassCup,
    Jug,
    TinCup,
    WoodBowl,
    WoodCup,
)
from agentgyms.envs.scienceworld.own.objects.furniture import Closet, Cupboard, Desk
from agentgyms.envs.scienceworld.own.objects.paint import BluePaint, RedPaint, YellowPaint
from agentgyms.envs.scienceworld.own.tasks.modifiers import TaskModifier, TaskValue, placed
from agentgyms.envs.scienceworld.own.tasks.parametric import Notes, TaskParametric

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.world import World

_SECONDARY: Final = {
    "green": ("blue", "yellow"),
    "orange": ("red", "yellow"),
    "violet": ("red", "blue"),
}
_COLORS: Final = (
    ("green", "blue", "green-blue"),
    ("green", "yellow", "yellow-green"),
    ("orange", "red", "red-orange"),
    ("orange", "yellow", "yellow-orange"),
    ("violet", "red", "violet-red"),
    ("violet", "blue", "blue-violet"),
)
"""A secondary color, a primary color to mix with it, and what that gives."""

_ROOMS: Final = ("art studio", "workshop")
_HOLDERS: Final[tuple[tuple[type[EnvObject], type[EnvObject], str], ...]] = (
    (Cupboard, WoodCup, "paint cupboard"),
    (Closet, GlassCup, "paint closet"),
    (Desk, TinCup, ""),
)
"""Furniture, the cups in it, and the name that it gets, if any."""

_TERTIARY_TASK: Final = "chemistry-mix-paint-tertiary-color"


class TaskChemistryMixPaint(TaskParametric):
    """Furniture with paints of the primary colors."""

    COUNT = 36
    DRAWS = 2

    def combination(self, world: World, idx: int) -> list[TaskModifier]:
        """Make the paints, and for the workshop something to mix them in."""
        number, place = divmod(idx, len(_ROOMS) * len(_HOLDERS))
        room_number, holder_number = divmod(place, len(_HOLDERS))
        room = _ROOMS[room_number]
        mixers = world.random.shuffle([GlassCup(world), WoodBowl(world), Jug(world)])
        holder = _filled(world)[holder_number]
        out: list[TaskModifier] = [*_color_notes(number), placed(holder, room)]
        out.append(TaskValue("location", room))
        if room == "workshop":
            out.append(placed(mixers[holder_number], room))
        return out

    def describe(
        self, given: Notes, idx: int, world: World, goals: list[Goal], unordered: list[Goal]
    ) -> str:
        """Ask for the color, and where it is a tertiary one, for the secondary one before."""
        del idx, world
        if self.name == _TERTIARY_TASK:
            return _describe_tertiary(given, goals, unordered)
        secondary = given.text("secondaryColor")
        names = given.texts("inputChemicalsSecondary")
        goals.append(GoalFind(secondary, f"focus on the mixing result ({secondary})"))
        unordered.append(GoalMoveToNewLocation("move to a new location"))
        unordered += [GoalInRoomWithObject(name, _with(name)) for name in names]
        unordered += [
            GoalObjectsInSingleContainer(names, "have all ingredients alone in a single container"),
            GoalInRoomWithObject(secondary, _with(secondary)),
        ]
        return (
            f"Your task is to use chemistry to create {secondary}. "
            f"When you are done, focus on the {secondary}."
        )


def _filled(world: World) -> list[EnvObject]:
    """Return all furniture; the cups of the last only keep the paint, as it comes there last."""
    paints = (RedPaint(world), BluePaint(world), YellowPaint(world))
    out = []
    for kind, cup_kind, name in _HOLDERS:
        holder = kind(world)
        for paint in paints:
            cup = cup_kind(world)
            cup.add_object(paint)
            holder.add_object(cup)
        holder.name = name or holder.name
        out.append(holder)
    return out


def _color_notes(number: int) -> list[TaskModifier]:
    secondary, primary, tertiary = _COLORS[number]
    first, second = _SECONDARY[secondary]
    return [
        TaskValue("inputChemicalsSecondary", f"{first} paint,{second} paint"),
        TaskValue("inputChemicalsTertiary", f"{secondary} paint,{primary} paint"),
        TaskValue("secondaryColor", f"{secondary} paint"),
        TaskValue("tertiaryColor", f"{tertiary} paint"),
    ]


def _describe_tertiary(given: Notes, goals: list[Goal], unordered: list[Goal]) -> str:
    secondary, tertiary = given.text("secondaryColor"), given.text("tertiaryColor")
    room = given.text("location")
    first, second = given.texts("inputChemicalsSecondary"), given.texts("inputChemicalsTertiary")
    part = f"focus on the intermediate mixing result ({secondary})"
    goals += [
        GoalFind(secondary, part, defocus_on_success=True),
        GoalFind(tertiary, f"focus on the final mixing result ({tertiary})"),
    ]
    moved = "move to a new location (unless starting in task location)"
    unordered += [
        GoalMoveToNewLocation(moved, room),
        GoalMoveToLocation(room, "move to the location of the paint"),
        *(GoalInRoomWithObject(name, _with(name)) for name in first),
        GoalObjectsInSingleContainer(
            first, "have all ingredients (secondary) alone in a single container"
        ),
        GoalInRoomWithObject(secondary, _with(f"(secondary) {secondary}"), key="secondary"),
    ]
    unordered += [
        GoalInRoomWithObject(
            name,
            _with(f"(tertiary) {name}"),
            key=f"tertiary_{name}",
            prerequisites=("secondary",),
        )
        for name in second
    ]
    unordered += [
        GoalObjectsInSingleContainer(
            second, "have all ingredients (tertiary) alone in a single container"
        ),
        GoalInRoomWithObject(tertiary, _with(tertiary)),
    ]
    return (  # which asks for the secondary color at the end, too
        f"Your task is to use chemistry to create {tertiary}. When you are part-way done, "
        "focus on the intermediate (secondary color) paint you created.  "
        f"When you are completely done, focus on the {secondary}."
    )


def _with(name: str) -> str:
    return f"be in same location as {name}"
