"""Comparing inclined planes: their friction, or their angle."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Final

from agentgyms.envs.scienceworld.own.goals.base import Goal
from agentgyms.envs.scienceworld.own.goals.contents import GoalSpecificObjectInDirectContainer
from agentgyms.envs.scienceworld.own.goals.devices import (
    GoalActivateDeviceWithName,
    GoalDeactivateDeviceWithName,
)
from agentgyms.envs.scienceworld.own.goals.finds import (
    GoalFindInclinedPlane,
    GoalFindInclinedPlaneNamed,
)
from agentgyms.envs.scienceworld.own.goals.past import GoalPastActionExamineObject
from agentgyms.envs.scienceworld.own.goals.places import (
    GoalMoveToLocation,
    GoalMoveToNewLocation,
)
from agentgyms.envs.scienceworld.own.objects.devices import StopWatch
from agentgyms.envs.scienceworld.own.objects.planes import InclinedPlane
from agentgyms.envs.scienceworld.own.objects.substances import Brick, SteelBlock, WoodBlock
from agentgyms.envs.scienceworld.own.properties import MaterialProperties, materials
from agentgyms.envs.scienceworld.own.tasks.draws import shuffled
from agentgyms.envs.scienceworld.own.tasks.modifiers import TaskModifier, TaskValue, placed
from agentgyms.envs.scienceworld.own.tasks.parametric import Notes, TaskParametric

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.world import World

_ROOM: Final = "workshop"
_BLOCKS: Final = (WoodBlock, SteelBlock, Brick)


class _TwoPlanes(TaskParametric):
    """Two planes that differ by more than `THRESHOLD`, a block to slide and a stopwatch.

    Every other variation asks for the plane with less `SUBJECT`. With `TOLD` the goals say more.
    """

    SUBJECT = "friction"
    MOST = "most"
    LEAST = "least"
    THRESHOLD = 0.05
    FINDS: ClassVar[type[GoalFindInclinedPlane | GoalFindInclinedPlaneNamed]]
    TOLD = False
    MOST_FIRST = True

    def plane(self, world: World, number: int) -> InclinedPlane:
        raise NotImplementedError

    def compared(self) -> list[tuple[float, str]]:
        """Return what is compared of all planes, and what they are known by."""
        raise NotImplementedError

    def combination(self, world: World, idx: int) -> list[TaskModifier]:
        pair, block_number = divmod(idx, len(_BLOCKS))
        numbers = _pairs(tuple(size for size, _ in self.compared()), self.THRESHOLD)[pair]
        planes = [self.plane(world, number) for number in numbers]
        block, watch = _BLOCKS[block_number](world), StopWatch(world)
        least, most = sorted(self.compared()[number] for number in numbers)
        asks_most = (idx % 2 == 0) == self.MOST_FIRST
        return [
            placed(planes[0], _ROOM, force=True),
            TaskValue("planeLocation", _ROOM),
            placed(planes[1], _ROOM, force=True),
            placed(block, _ROOM, force=True),
            TaskValue("blockName", block.name),
            placed(watch, _ROOM),
            TaskValue("timeDeviceName", watch.name),
            TaskValue("timeLocation", _ROOM),
            TaskValue(self.LEAST, least[1]),
            TaskValue(self.MOST, most[1]),
            TaskValue("planeName1", planes[0].descript_name()),
            TaskValue("planeName2", planes[1].descript_name()),
            TaskValue("mode", self.MOST if asks_most else self.LEAST),
        ]

    def describe(
        self, given: Notes, idx: int, world: World, goals: list[Goal], unordered: list[Goal]
    ) -> str:
        del idx
        asked, room = given.text("mode"), given.text("planeLocation")
        focus = "focus on correct inclined plane" if self.TOLD else ""
        goals.append(self.FINDS(given.text(asked), focus, defocus_on_success=True))
        moved = "move to a new location (unless starting in task location)"
        unordered += [
            GoalMoveToNewLocation(moved, room),
            GoalMoveToLocation(room, "move to the location asked by the task"),
            *(goal for at in (1, 2) for goal in self._plane_goals(given, at)),
        ]
        names = world.random.shuffle(self._named(given))
        return (
            f"Your task is to determine which of the two inclined planes ({', '.join(names)}) "
            f"has the {asked} {self.SUBJECT}. After completing your experiment, "
            f"focus on the inclined plane with the {asked} {self.SUBJECT}."
        )

    def _named(self, given: Notes) -> list[str]:
        return [given.text(self.LEAST), given.text(self.MOST)]

    def _plane_goals(self, given: Notes, at: int) -> list[Goal]:
        watch = given.text("timeDeviceName")
        plane = f" (plane {at})" if self.TOLD else ""
        keys = [f"{key}{at}" for key in ("b", "aTime", "dTime", "readTime")]
        return [
            GoalSpecificObjectInDirectContainer(
                given.text(f"planeName{at}"),
                given.text("blockName"),
                f"move block to plane {at}",
                key=keys[0],
            ),
            GoalActivateDeviceWithName(
                watch, f"activate time keeping device{plane}", key=keys[1], prerequisites=(keys[0],)
            ),
            GoalDeactivateDeviceWithName(
                watch,
                f"deactivate time keeping device{plane}",
                key=keys[2],
                prerequisites=(keys[1],),
            ),
            GoalPastActionExamineObject(
                watch, f"read time keeping device{plane}", key=keys[3], prerequisites=(keys[2],)
            ),
        ]


@lru_cache(maxsize=4)
def _pairs(sizes: tuple[float, ...], threshold: float) -> tuple[tuple[int, int], ...]:
    numbers = range(len(sizes))
    return tuple(
        (first, second)
        for first in numbers
        for second in numbers
        if not abs(sizes[first] - sizes[second]) <= threshold
    )


_NAMED: Final = shuffled(
    (
        materials.AluminumProp,
        materials.BrassProp,
        materials.BronzeProp,
        materials.CaesiumProp,
        materials.CopperProp,
        materials.IronProp,
        materials.LeadProp,
        materials.PlatinumProp,
        materials.SteelProp,
        materials.TinProp,
        materials.TitaniumProp,
        materials.ZincProp,
        materials.GlassProp,
        materials.PlasticProp,
        materials.CeramicProp,
        materials.WoodProp,
        materials.PaperProp,
        materials.SandpaperProp,
        materials.CottonClothProp,
        materials.RubberProp,
        materials.ChocolateProp,
        materials.SoapyWaterProp,
        materials.GreenPaintProp,
    ),
    3,
)
_UNNAMED: Final = shuffled(
    (
        materials.UnknownFrictionMaterialB,
        materials.UnknownFrictionMaterialC,
        materials.UnknownFrictionMaterialD,
        materials.UnknownFrictionMaterialE,
        materials.UnknownFrictionMaterialF,
        materials.UnknownFrictionMaterialG,
        materials.UnknownFrictionMaterialH,
        materials.UnknownFrictionMaterialJ,
    ),
    4,
)


class _Friction(_TwoPlanes):
    FINDS = GoalFindInclinedPlane
    SURFACES: ClassVar[list[type[MaterialProperties]]]

    def plane(self, world: World, number: int) -> InclinedPlane:
        return InclinedPlane(world, 45.0, self.SURFACES[number]())

    def compared(self) -> list[tuple[float, str]]:
        return [(each.friction_coefficient, each.substance_name) for each in self.SURFACES]


class TaskInclinedPlane1(_Friction):
    """Planes with surfaces that one knows."""

    COUNT = 1386
    TOLD = True
    SURFACES: ClassVar = _NAMED


class TaskInclinedPlane2(_Friction):
    """Planes with surfaces that are known by a letter."""

    COUNT = 162
    SURFACES: ClassVar = _UNNAMED


_ANGLES: Final = (
    (70.0, "B"),
    (80.0, "C"),
    (20.0, "D"),
    (10.0, "E"),
    (60.0, "F"),
    (40.0, "G"),
    (30.0, "H"),
    (50.0, "J"),
)


class TaskInclinedPlane3(_TwoPlanes):
    """Planes that differ in their angle."""

    COUNT = 168
    SUBJECT = "angle"
    MOST = "steepest"
    LEAST = "shallowest"
    THRESHOLD = 5.0
    FINDS = GoalFindInclinedPlaneNamed
    MOST_FIRST = False

    def plane(self, world: World, number: int) -> InclinedPlane:
        """Make a plane with an angle."""
        angle, letter = _ANGLES[number]
        return InclinedPlane(world, angle, additional_name=letter)

    def compared(self) -> list[tuple[float, str]]:
        """Return the angles of all planes, and their letters."""
        return list(_ANGLES)

    def _named(self, given: Notes) -> list[str]:
        return super()._named(given)[::-1]  # the engine names the steepest first
