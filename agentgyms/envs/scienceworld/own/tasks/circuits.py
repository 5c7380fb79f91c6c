"""Powering a part, and testing whether a substance conducts electricity."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from agentgyms.envs.scienceworld.own.goals.base import Goal
from agentgyms.envs.scienceworld.own.goals.contents import GoalObjectInContainerByName
from agentgyms.envs.scienceworld.own.goals.devices import GoalActivateDevice
from agentgyms.envs.scienceworld.own.goals.finds import GoalFind
from agentgyms.envs.scienceworld.own.goals.places import (
    GoalInRoomWithObject,
    GoalMoveToNewLocation,
)
from agentgyms.envs.scienceworld.own.goals.wires import (
    GoalElectricallyConnected,
    GoalObjectConnectedToWire,
    GoalWireConnectsObjectAndAnyLightBulb,
    GoalWireConnectsObjectAndAnyPowerSource,
    GoalWireConnectsPowerSourceAndAnyLightBulb,
)
from agentgyms.envs.scienceworld.own.life.fruits import Apricot
from agentgyms.envs.scienceworld.own.objects.base import EnvObject
from agentgyms.envs.scienceworld.own.objects.circuits.parts import (
    Battery,
    ElectricBuzzer,
    ElectricMotor,
    GasGenerator,
    LightBulb,
    NuclearGenerator,
    SolarPanel,
    WindGenerator,
)
from agentgyms.envs.scienceworld.own.objects.containers import GlassJar, MetalPot
from agentgyms.envs.scienceworld.own.objects.devices import Shovel
from agentgyms.envs.scienceworld.own.objects.documents import EXCERPTS, Book
from agentgyms.envs.scienceworld.own.objects.misc import (
    AluminumFoil,
    ForkMetal,
    ForkPlastic,
    PaperClip,
)
from agentgyms.envs.scienceworld.own.objects.substances import SodiumChloride, Water, WoodBlock
from agentgyms.envs.scienceworld.own.objects.taskitems import (
    UnknownSubstanceElectricalConductivity,
)
from agentgyms.envs.scienceworld.own.tasks.answers import LETTERS, answer_boxes
from agentgyms.envs.scienceworld.own.tasks.modifiers import (
    TaskModifier,
    TaskValue,
    material_of,
    placed,
)
from agentgyms.envs.scienceworld.own.tasks.parametric import Notes, TaskParametric, skip_draws

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.world import World

_ROOM: Final = "workshop"
_BULBS: Final = ("red", "green", "blue")
_PARTS: Final = 5
_BOXES: Final = 5


def _part(world: World, number: int) -> EnvObject:
    if number < len(_BULBS):
        return LightBulb(world, _BULBS[number])
    return ElectricMotor(world) if number == len(_BULBS) else ElectricBuzzer(world)


class TaskElectricCircuit(TaskParametric):
    """Parts to power and sources of power, of which only one may be used in one mode."""

    COUNT = 20

    def combination(self, world: World, idx: int) -> list[TaskModifier]:
        """Make a battery, the parts and two other sources."""
        number, sources = divmod(idx, 4)
        made = [Battery(world), *(_part(world, at) for at in range(_PARTS))]
        part = made[1 + number]
        renewable = WindGenerator(world) if sources // 2 else SolarPanel(world)
        other = NuclearGenerator(world) if sources % 2 else GasGenerator(world)
        return [
            *(placed(obj, _ROOM) for obj in made),
            TaskValue("componentToPower", part.name),
            placed(renewable, _ROOM),
            TaskValue("renewableSource", renewable.name),
            placed(other, _ROOM),
            TaskValue("nonrenewableSource", other.name),
        ]

    def describe(
        self, given: Notes, idx: int, world: World, goals: list[Goal], unordered: list[Goal]
    ) -> str:
        """Ask for power, and where it matters, for power of one kind."""
        del world
        part, source, kind, with_kind = given.text("componentToPower"), "", "", ""
        any_kind = self.name == "power-component"
        goals += [
            GoalFind(part, "focus on task object"),
            GoalActivateDevice(part, "power task object"),
        ]
        if not any_kind:
            kind = "nonrenewable" if idx % 2 else "renewable"
            source = given.text(f"{kind}Source")
            with_kind = f" by powering it using a {kind} power source"
            goals.append(GoalElectricallyConnected(source, "use correct power source"))
        unordered += _wire_goals(part, source, str.capitalize if any_kind else str)
        return (
            f"Your task is to turn on the {part}{with_kind}. First, focus on the {part}. "
            "Then, create an electrical circuit that powers it on. "
        )


def _wire_goals(name: str, source: str, told: Callable[[str], str]) -> list[Goal]:
    powered = "task object is at least partially connected to power source through wire"
    ends = ("(terminal1/anode)", "(terminal2/cathode)")
    return [
        GoalMoveToNewLocation("move to a new location"),
        GoalInRoomWithObject(name, "be in same location as part to power"),
        *(
            GoalObjectConnectedToWire(
                name, told(f"connect the task object's {end} to a wire"), first=at == 0
            )
            for at, end in enumerate(ends)
        ),
        GoalWireConnectsObjectAndAnyPowerSource(name, told(powered), source),
    ]


class _TestConductivity(TaskParametric):
    """A substance of which one must find out whether it conducts."""

    def combination(self, world: World, idx: int) -> list[TaskModifier]:
        number, rest = divmod(idx, _PARTS * _BOXES)
        part_number, box_number = divmod(rest, _BOXES)
        made = (Battery(world), _part(world, part_number))
        substance = self.substance(world, number)
        boxes = answer_boxes(world, _ROOM, box_number, "conductive", "nonconductive")
        return [
            *(placed(obj, _ROOM) for obj in made),
            TaskValue("partToPower", made[1].name),
            *self.in_order(substance, boxes),
        ]

    def substance(self, world: World, number: int) -> list[TaskModifier]:
        raise NotImplementedError

    def in_order(
        self, substance: list[TaskModifier], boxes: list[TaskModifier]
    ) -> list[TaskModifier]:
        """Return the substance and the boxes in the order in which they come to the house."""
        raise NotImplementedError

    def describe(
        self, given: Notes, idx: int, world: World, goals: list[Goal], unordered: list[Goal]
    ) -> str:
        del idx, world
        name, room = given.text("substance"), given.text("substanceLocation")
        boxes = given.text("conductive"), given.text("nonconductive")
        right, wrong = boxes if given["isConductive"] else boxes[::-1]
        goals += [
            GoalFind(name, "focus on task object"),
            GoalObjectInContainerByName(right, "put object in correct container", (wrong,)),
        ]
        unordered += _wire_goals(name, "", str)
        lit = "task object is at least partially connected to a light bulb through wire"
        powered = "light bulb is at least partially connected to a power source through wire"
        unordered += [
            GoalWireConnectsObjectAndAnyLightBulb(name, lit),
            GoalWireConnectsPowerSourceAndAnyLightBulb(powered),
        ]
        return (
            f"Your task is to determine if {name} is electrically conductive. "
            f"The {name} is located around the {room}. First, focus on the {name}. "
            f"If it is electrically conductive, place it in the {boxes[0]}. "
            f"If it is electrically nonconductive, place it in the {boxes[1]}. "
        )


def _book(world: World) -> EnvObject:
    return Book(world, next(each for each in EXCERPTS if "Species" in each.title))


_SUBSTANCES: Final[tuple[Callable[[World], EnvObject], ...]] = (
    AluminumFoil,
    Apricot,
    _book,
    GlassJar,
    ForkMetal,
    MetalPot,
    PaperClip,
    ForkPlastic,
    Shovel,
    SodiumChloride,
    Water,
    WoodBlock,
)
"""The substances in the order of their names."""

_SUBSTANCE_ROOMS: Final = ("workshop", "kitchen", "living room")


class TaskElectricalConductivity(_TestConductivity):
    """A substance that one knows."""

    COUNT = 900

    def substance(self, world: World, number: int) -> list[TaskModifier]:
        """Make the substance; water is in the house."""
        at, room_number = divmod(number, len(_SUBSTANCE_ROOMS))
        made, room = _SUBSTANCES[at](world), _SUBSTANCE_ROOMS[room_number]
        out: list[TaskModifier] = [
            TaskValue("substance", made.name),
            TaskValue("substanceLocation", room),
            TaskValue("isConductive", material_of(made).electrically_conductive),
        ]
        return out if isinstance(made, Water) else [placed(made, room, force=True), *out]

    def in_order(
        self, substance: list[TaskModifier], boxes: list[TaskModifier]
    ) -> list[TaskModifier]:
        """Put the boxes first."""
        return [*boxes, *substance]


class TaskElectricalConductivity2(_TestConductivity):
    """A substance that is known by a letter."""

    COUNT = 600
    DRAWS = 24

    def substance(self, world: World, number: int) -> list[TaskModifier]:
        """Make the substance."""
        skip_draws(world, number)
        made = UnknownSubstanceElectricalConductivity.mk_random_substance_electrical_conductive(
            world, LETTERS[number]
        )
        return [
            placed(made, _ROOM),
            TaskValue("substance", made.name),
            TaskValue("substanceLocation", _ROOM),
            TaskValue("isConductive", material_of(made).electrically_conductive),
        ]

    def in_order(
        self, substance: list[TaskModifier], boxes: list[TaskModifier]
    ) -> list[TaskModifier]:
        """Put the substance first."""
        return [*substance, *boxes]
