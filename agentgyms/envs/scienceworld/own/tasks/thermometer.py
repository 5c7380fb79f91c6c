"""Measuring a temperature with a thermometer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Final

from agentgyms.envs.scienceworld.own.goals.base import Goal
from agentgyms.envs.scienceworld.own.goals.contents import (
    GoalSpecificObjectInDirectContainer,
)
from agentgyms.envs.scienceworld.own.goals.finds import GoalFind
from agentgyms.envs.scienceworld.own.goals.matter import (
    GoalContainerByTemperature,
)
from agentgyms.envs.scienceworld.own.goals.past import GoalPastActionUseObjectOnObject
from agentgyms.envs.scienceworld.own.goals.places import (
    GoalInRoomWithObject,
    GoalMoveToLocation,
    GoalMoveToNewLocation,
)
from agentgyms.envs.scienceworld.own.jvm import double_text
from agentgyms.envs.scienceworld.own.objects.base import EnvObject
from agentgyms.envs.scienceworld.own.objects.circuits.parts import Wire
from agentgyms.envs.scienceworld.own.objects.devices import Thermometer
from agentgyms.envs.scienceworld.own.objects.misc import ForkMetal
from agentgyms.envs.scienceworld.own.objects.substances import (
    SodiumChloride,
    Wood,
)
from agentgyms.envs.scienceworld.own.objects.taskitems import UnknownSubstanceThermal
from agentgyms.envs.scienceworld.own.tasks.answers import answer_boxes
from agentgyms.envs.scienceworld.own.tasks.draws import subsampled
from agentgyms.envs.scienceworld.own.tasks.modifiers import (
    TaskModifier,
    TaskValue,
    material_of,
    placed,
)
from agentgyms.envs.scienceworld.own.tasks.parametric import Notes, TaskParametric, skip_draws

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.world import World

_BOX_PAIRS: Final = 5
POINTS: Final = 5
"""How many temperatures there are."""


class Measure(TaskParametric):
    """A thermometer, a thing, and boxes for things above or below a temperature of `POINTS`.

    Boxes are in one of `ROOMS`. Variations are a `SHARE` (0 to 1) of all combinations.
    """

    POINTS: ClassVar[tuple[int, ...]] = (-10, 10, 50, 150, 200)
    ROOMS: ClassVar[tuple[str, ...]] = ("kitchen",)
    SHARE: ClassVar[float]
    ITEMS: ClassVar[int]

    def combination(self, world: World, idx: int) -> list[TaskModifier]:
        """Make the thermometer, the thing and the boxes."""
        pairs = len(self.ROOMS) * _BOX_PAIRS
        chosen = subsampled(self.ITEMS * POINTS * pairs, self.SHARE)[idx]
        rest, pair = divmod(chosen, pairs)
        item, point = divmod(rest, POINTS)
        thermometer = Thermometer(world)
        measured = self.item(world, item)
        room_number, box_number = divmod(pair, _BOX_PAIRS)
        room = self.ROOMS[room_number]
        return [
            placed(thermometer, "kitchen"),
            TaskValue("instrumentName", thermometer.name),
            *measured,
            TaskValue("temperaturePoint", float(self.POINTS[point])),
            *answer_boxes(world, room, box_number, "boxAbove", "boxBelow"),
            TaskValue("locationAnswerBox", room),
        ]

    def item(self, world: World, number: int) -> list[TaskModifier]:
        """Make the thing of a number in the order of names."""
        raise NotImplementedError


_SUBSTANCE_B: Final = "B"
_UNKNOWN: Final = 20

_KINDS: Final[tuple[tuple[int, int, Callable[[World], EnvObject]], ...]] = (
    (1, 1, ForkMetal),
    (0, 1, SodiumChloride),
    (4, _UNKNOWN, UnknownSubstanceThermal),
    (3, 1, Wire),
    (2, 1, Wood),
)
"""The things in the order of their names: the place at which each is made, and how many are."""

_MADE: Final = 24  # things for each room and temperature
_ITEM_DRAWS: Final = 2


class TaskUseInstrumentThermometer(Measure):
    """A thing with a temperature of its own."""

    COUNT = 540
    DRAWS = 720
    POINTS = (-50, 0, 50, 100, 200)
    ROOMS = ("living room", "bedroom", "bathroom")
    SHARE = 0.02
    ITEMS = 360

    def item(self, world: World, number: int) -> list[TaskModifier]:
        """Make a thing, hotter or colder than one of the temperatures."""
        groups = len(self.ROOMS) * POINTS
        for first, count, kind in _KINDS:  # noqa: B007
            if number < count * groups:
                break
            number -= count * groups
        group, at = divmod(number, count)
        room_number, point = divmod(group, POINTS)
        skip_draws(world, _ITEM_DRAWS * (group * _MADE + first + at))
        thing, room = kind(world), self.ROOMS[room_number]
        material_of(thing).temperature_c = _near(world, self.POINTS[point])
        return [
            placed(thing, room, force=kind is SodiumChloride),
            TaskValue("objectName", thing.name),
            TaskValue("location", room),
        ]

    def describe(
        self, given: Notes, idx: int, world: World, goals: list[Goal], unordered: list[Goal]
    ) -> str:
        """Ask for the box that is right."""
        del idx, world
        tool, name = given.text("instrumentName"), given.text("objectName")
        room, box_room = given.text("location"), given.text("locationAnswerBox")
        above, below = given.text("boxAbove"), given.text("boxBelow")
        point = given.number("temperaturePoint")
        goals += [
            GoalFind(tool, "focus on instrument", defocus_on_success=True),
            GoalFind(name, "focus on object"),
            GoalContainerByTemperature(
                point, above=above, below=below, description="move object to correct answer box"
            ),
        ]
        asked = "move to the location asked by the task"
        used = "use instrument on object"
        unordered += [
            GoalInRoomWithObject(tool, f"be in same location as {tool}"),
            in_inventory("thermometer", "have thermometer in inventory"),
            GoalMoveToNewLocation("move to a new location"),
            GoalMoveToLocation(room, f"{asked} (object location)", key="move1"),
            GoalMoveToLocation(
                box_room, f"{asked} (answer box location)", key="move2", prerequisites=("move1",)
            ),
            in_inventory(name, "have task object in inventory"),
            GoalPastActionUseObjectOnObject(tool, name, used),
            GoalPastActionUseObjectOnObject(
                tool, name, f"{used} (in answer box location)", prerequisites=("move2",)
            ),
        ]
        temperature = f"If the {name} temperature is"
        degrees = f"{double_text(point)} degrees celsius, place it in the"
        return (
            f"Your task is to measure the temperature of {name}, "
            f"which is located around the {room}. "
            f"First, focus on the thermometer. Next, focus on the {name}. "
            f"{temperature} above {degrees} {above}. {temperature} below {degrees} {below}. "
            f"The boxes are located around the {box_room}. "
        )


def _near(world: World, point: int) -> float:
    """Return a temperature that is 50 to 149 degrees above or below a point."""
    delta = world.random.next_int(100) + 50
    return float(point - delta if world.random.next_boolean() else point + delta)


def in_inventory(name: str, told: str) -> Goal:
    """Return the goal of one who takes a thing along."""
    return GoalSpecificObjectInDirectContainer("inventory", name, told)
