"""Measuring a melting point with a thermometer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentgyms.envs.scienceworld.own.goals.base import Goal
from agentgyms.envs.scienceworld.own.goals.contents import (
    GoalObjectsInSingleContainer,
)
from agentgyms.envs.scienceworld.own.goals.finds import GoalFind, GoalFindAnswerBox
from agentgyms.envs.scienceworld.own.goals.matter import (
    GoalTemperatureIncrease,
)
from agentgyms.envs.scienceworld.own.goals.past import GoalPastActionUseObjectOnObject
from agentgyms.envs.scienceworld.own.goals.places import (
    GoalInRoomWithObject,
    GoalMoveToLocation,
    GoalMoveToNewLocation,
)
from agentgyms.envs.scienceworld.own.house.cups import mk_random_liquid_cup
from agentgyms.envs.scienceworld.own.jvm import double_text
from agentgyms.envs.scienceworld.own.life.food import Chocolate, OrangeJuice
from agentgyms.envs.scienceworld.own.objects.base import EnvObject
from agentgyms.envs.scienceworld.own.objects.substances import (
    Gallium,
    Lead,
    Mercury,
    Tin,
    Water,
)
from agentgyms.envs.scienceworld.own.objects.taskitems import UnknownSubstanceThermal
from agentgyms.envs.scienceworld.own.tasks.answers import LETTERS
from agentgyms.envs.scienceworld.own.tasks.heaters import heater_goals
from agentgyms.envs.scienceworld.own.tasks.modifiers import (
    TaskModifier,
    TaskObject,
    TaskValue,
    material_of,
    placed,
)
from agentgyms.envs.scienceworld.own.tasks.parametric import Notes, skip_draws
from agentgyms.envs.scienceworld.own.tasks.thermometer import POINTS, Measure, in_inventory

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.world import World


class _MeltingPoint(Measure):
    def describe(
        self, given: Notes, idx: int, world: World, goals: list[Goal], unordered: list[Goal]
    ) -> str:
        del idx, world
        tool, name, room = given.text("instrumentName"), given.text("objectName"), "kitchen"
        above, below = given.text("boxAbove"), given.text("boxBelow")
        point = given.number("temperaturePoint")
        right = above if given.number("meltingPoint") >= point else below
        goals += [
            GoalFind(tool, "focus on thermometer", defocus_on_success=True),
            GoalFind(name, "focus on substance", key="focusObject"),
            GoalFindAnswerBox(right, "focus on correct answer box"),
        ]
        unordered += [*_before_heating(tool, name, room), *heater_goals("substance", "focusObject")]
        unordered.append(
            GoalTemperatureIncrease(
                20.0,
                "heat substance by at least 20C",
                key="heatObject",
                prerequisites=("focusObject",),
            )
        )
        melting = f"If the melting point of {name} is"
        degrees = f"{double_text(point)} degrees celsius, focus on the"
        return (
            f"Your task is to measure the melting point of {name}, "
            f"which is located around the {room}. "
            f"First, focus on the thermometer. Next, focus on the {name}. "
            f"{melting} above {degrees} {above}. {melting} below {degrees} {below}. "
            f"The boxes are located around the {room}. "
        )


def _before_heating(tool: str, name: str, room: str) -> list[Goal]:
    asked = "move to the location asked by the task"
    used = "use thermometer on substance"
    return [
        GoalInRoomWithObject("thermometer", "be in same location as thermometer"),
        in_inventory("thermometer", "have thermometer in inventory"),
        GoalMoveToNewLocation("move to a new location"),
        GoalMoveToLocation(room, f"{asked} (substance location)", key="move1"),
        GoalMoveToLocation(room, f"{asked} (answer box location)", key="move1"),
        *(
            GoalMoveToLocation(
                place,
                f"move to a location with a heating device ({place})",
                key=f"move2{letter}",
                prerequisites=("move1",),
            )
            for place, letter in (("kitchen", "a"), ("outside", "b"), ("foundry", "c"))
        ),
        in_inventory(name, "have task object in inventory"),
        GoalPastActionUseObjectOnObject(tool, name, used),
        GoalPastActionUseObjectOnObject(
            tool, name, f"{used} (after it has been heated)", prerequisites=("heatObject",)
        ),
        GoalObjectsInSingleContainer((name,), "have substance alone in a single container"),
    ]


def _substance(
    thing: EnvObject, name: str, room: str, melting_point: float, *, force: bool = False
) -> list[TaskModifier]:
    return [
        placed(thing, room, force=force),
        TaskValue("objectName", name),
        TaskValue("location", room),
        TaskValue("meltingPoint", melting_point),
    ]


_KNOWN: Final[tuple[tuple[type[EnvObject], int], ...]] = (
    (Chocolate, 1),
    (Gallium, 2),
    (Lead, 4),
    (Mercury, 1),
    (OrangeJuice, 0),
    (Tin, 3),
    (Water, 0),
)
"""The substances in the order of their names, and how many cups are drawn before theirs."""

_CUPS: Final = 5


class TaskUseInstrumentThermometer2(_MeltingPoint):
    """A substance that one knows."""

    COUNT = 436
    DRAWS = 25
    SHARE = 0.5
    ITEMS = 35

    def item(self, world: World, number: int) -> list[TaskModifier]:
        """Make a substance, which there are five of because the engine has five temperatures."""
        at, copy = divmod(number, POINTS)
        kind, cups_before = _KNOWN[at]
        skip_draws(world, copy * _CUPS + cups_before)
        made = kind(world)
        room = self.ROOMS[0]
        known = _substance(made, made.name, room, material_of(made).melting_point)[1:]
        if kind is Water:  # which the house has
            return [TaskObject(made.name, None, room, force=True), *known]
        if kind is Chocolate:
            return [TaskObject("chocolate", made, room, ("fridge",)), *known]
        if kind is OrangeJuice:
            cup = mk_random_liquid_cup(OrangeJuice(world))
            return [TaskObject("orange juice", cup, room, ("fridge",)), *known]
        name = made.name
        return [TaskObject(name, mk_random_liquid_cup(made), room), *known]


_LIQUID: Final = "DEJMTVX"
"""The letters of the substances that melt below 15 degrees, and come in a cup."""

_SORTED_LETTERS: Final = _LIQUID + "".join(each for each in LETTERS if each not in _LIQUID)


class TaskUseInstrumentThermometer3(_MeltingPoint):
    """A substance that is known by a letter."""

    COUNT = 300
    DRAWS = 775
    SHARE = 0.02
    ITEMS = 600

    def item(self, world: World, number: int) -> list[TaskModifier]:
        """Make a substance; the engine has 25 of each letter."""
        at, copy = divmod(number, POINTS * POINTS)
        letter = _SORTED_LETTERS[at]
        made_before = LETTERS.index(letter)
        cups_before = sum(each in _LIQUID for each in LETTERS[:made_before])
        skip_draws(world, copy * (len(LETTERS) + len(_LIQUID)) + made_before + cups_before + 1)
        made = UnknownSubstanceThermal.mk_random_substance_melting_point(world, letter)
        thing = mk_random_liquid_cup(made) if letter in _LIQUID else made
        point = material_of(made).melting_point
        return _substance(thing, made.name, self.ROOMS[0], point, force=True)
