"""Measuring temperatures and melting points with a thermometer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Final

from agentgyms.envs.scienceworld.own.goals.base import Goal
from agentgyms.envs.scienceworld.own.goals.contents import (
    GoalObjectsInSingleContainer,
    GoalSpecificObjectInDirectContainer,
)
from agentgyms.envs.scienceworld.own.goals.finds import GoalFind, GoalFindAnswerBox
from agentgyms.envs.scienceworld.own.goals.matter import (
    GoalContainerByTemperature,
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
from agentgyms.envs.scienceworld.own.objects.devices import Thermometer
from agentgyms.envs.scienceworld.own.objects.electrical import Wire
from agentgyms.envs.scienceworld.own.objects.misc import ForkMetal
from agentgyms.envs.scienceworld.own.objects.substances import (
    Gallium,
    Lead,
    Mercury,
    SodiumChloride,
    Tin,
    Water,
    Wood,
)
from agentgyms.envs.scienceworld.own.objects.taskitems import UnknownSubstanceThermal
from agentgyms.envs.scienceworld.own.tasks.common import (
    LETTERS,
    answer_boxes,
    heater_goals,
    subsampled,
)
from agentgyms.envs.scienceworld.own.tasks.modifiers import (
    TaskModifier,
    TaskObject,
    TaskValue,
    material_of,
    placed,
)
from agentgyms.envs.scienceworld.own.tasks.parametric import Notes, TaskParametric, skip_draws

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.world import World

_BOX_PAIRS: Final = 5
_POINTS: Final = 5


class _Measure(TaskParametric):
    """A thermometer, a thing, and boxes for what is above or below a temperature.

    Attributes:
        POINTS: The temperatures.
        ROOMS: The rooms of the boxes.
        SHARE: How many of all combinations are variations.
    """

    POINTS: ClassVar[tuple[int, ...]] = (-10, 10, 50, 150, 200)
    ROOMS: ClassVar[tuple[str, ...]] = ("kitchen",)
    SHARE: ClassVar[float]
    ITEMS: ClassVar[int]

    def combination(self, world: World, idx: int) -> list[TaskModifier]:
        """Make the thermometer, the thing and the boxes."""
        pairs = len(self.ROOMS) * _BOX_PAIRS
        chosen = subsampled(self.ITEMS * _POINTS * pairs, self.SHARE)[idx]
        rest, pair = divmod(chosen, pairs)
        item, point = divmod(rest, _POINTS)
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


class TaskUseInstrumentThermometer(_Measure):
    """A thing with a temperature of its own."""

    COUNT = 540
    DRAWS = 720
    POINTS = (-50, 0, 50, 100, 200)
    ROOMS = ("living room", "bedroom", "bathroom")
    SHARE = 0.02
    ITEMS = 360

    def item(self, world: World, number: int) -> list[TaskModifier]:
        """Make a thing, hotter or colder than one of the temperatures."""
        groups = len(self.ROOMS) * _POINTS
        for first, count, kind in _KINDS:  # noqa: B007
            if number < count * groups:
                break
            number -= count * groups
        group, at = divmod(number, count)
        room_number, point = divmod(group, _POINTS)
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
            _in_inventory("thermometer", "have thermometer in inventory"),
            GoalMoveToNewLocation("move to a new location"),
            GoalMoveToLocation(room, f"{asked} (object location)", key="move1"),
            GoalMoveToLocation(
                box_room, f"{asked} (answer box location)", key="move2", prerequisites=("move1",)
            ),
            _in_inventory(name, "have task object in inventory"),
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


def _in_inventory(name: str, told: str) -> Goal:
    return GoalSpecificObjectInDirectContainer("inventory", name, told)


class _MeltingPoint(_Measure):
    """A substance whose melting point is above or below a temperature."""

    def describe(
        self, given: Notes, idx: int, world: World, goals: list[Goal], unordered: list[Goal]
    ) -> str:
        """Ask for a focus on the box that is right."""
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
        _in_inventory("thermometer", "have thermometer in inventory"),
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
        _in_inventory(name, "have task object in inventory"),
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
        at, copy = divmod(number, _POINTS)
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
        at, copy = divmod(number, _POINTS * _POINTS)
        letter = _SORTED_LETTERS[at]
        made_before = LETTERS.index(letter)
        cups_before = sum(each in _LIQUID for each in LETTERS[:made_before])
        skip_draws(world, copy * (len(LETTERS) + len(_LIQUID)) + made_before + cups_before + 1)
        made = UnknownSubstanceThermal.mk_random_substance_melting_point(world, letter)
        thing = mk_random_liquid_cup(made) if letter in _LIQUID else made
        point = material_of(made).melting_point
        return _substance(thing, made.name, self.ROOMS[0], point, force=True)
