"""Growing a plant from its seed, or a fruit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentgyms.envs.scienceworld.own.goals.base import Goal
from agentgyms.envs.scienceworld.own.goals.contents import (
    GoalContainerOpen,
    GoalSpecificObjectInDirectContainer,
)
from agentgyms.envs.scienceworld.own.goals.finds import GoalFind
from agentgyms.envs.scienceworld.own.goals.life import GoalLifeStage, GoalLifeStageAnywhere
from agentgyms.envs.scienceworld.own.goals.places import (
    GoalInRoomWithObject,
    GoalMoveToLocation,
    GoalMoveToNewLocation,
)
from agentgyms.envs.scienceworld.own.life.plant_stages import (
    PLANT_STAGE_ADULT_PLANT,
    PLANT_STAGE_REPRODUCING,
    PLANT_STAGE_SEED,
    PLANT_STAGE_SEEDLING,
)
from agentgyms.envs.scienceworld.own.life.plants import Soil
from agentgyms.envs.scienceworld.own.life.reproduction import PlantReproduction
from agentgyms.envs.scienceworld.own.objects.containers import CeramicCup, FlowerPot
from agentgyms.envs.scienceworld.own.tasks.modifiers import TaskModifier, TaskValue, placed
from agentgyms.envs.scienceworld.own.tasks.parametric import Notes, TaskParametric

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.world import World

_ROOMS: Final = ("kitchen", "bathroom", "living room", "bedroom", "workshop", "greenhouse")
_KINDS: Final = ("apple", "avocado", "banana", "cherry", "lemon", "orange", "peach")
_SEEDS: Final = 5
_POTS: Final = 3
_SOIL_INSIDE, _SOIL_BESIDE = 0, 1

_STAGES: Final = (
    (PLANT_STAGE_SEED, "seed"),
    (PLANT_STAGE_SEEDLING, "seedling"),
    (PLANT_STAGE_ADULT_PLANT, "adult"),
    (PLANT_STAGE_REPRODUCING, "reproducing"),
)
_REPRODUCED: Final = ("atLeast2Reproducing",)


def jar_goals(shovel: bool) -> list[Goal]:
    """Return the goals of one who brings a seed jar to the greenhouse, perhaps with soil."""
    out: list[Goal] = [
        GoalInRoomWithObject("seed jar", "be in same location as seed jar"),
        GoalSpecificObjectInDirectContainer(
            "inventory", "seed jar", "have seed jar in inventory", key="haveSeedJar"
        ),
    ]
    if shovel:
        out += [
            *(
                GoalSpecificObjectInDirectContainer("inventory", name, f"have {name} in inventory")
                for name in ("shovel", "soil")
            ),
            GoalInRoomWithObject("soil", "be in same location as soil"),
        ]
    return [
        *out,
        GoalMoveToNewLocation("move to a new location"),
        GoalMoveToLocation("greenhouse", "move to the greenhouse", key="move1"),
        GoalMoveToLocation(
            "greenhouse",
            "move to the greenhouse (after having seed jar)",
            key="move2",
            prerequisites=("haveSeedJar",),
        ),
    ]


def pot_goals(pots: tuple[str, ...], kind: str) -> list[Goal]:
    """Return the goals of one who puts soil, water and a seed into pots."""
    return [
        GoalSpecificObjectInDirectContainer(pot, wanted, f"have {what} in flower pot ({at})")
        for wanted, what in (("soil", "soil"), ("water", "water"), (f"{kind} seed", "seed"))
        for at, pot in enumerate(pots, 1)
    ]


def number_goals(kind: str, most: int) -> list[Goal]:
    """Return the goals of one who has one plant, two and more in each stage."""
    out: list[Goal] = []
    for number in range(1, most + 1):
        for stage, plants in (
            (PLANT_STAGE_SEED, "seeds"),
            (PLANT_STAGE_SEEDLING, "seedlings"),
            (PLANT_STAGE_ADULT_PLANT, "adult plants"),
            (PLANT_STAGE_REPRODUCING, "reproducing plants"),
        ):
            told = f"have at least {number} plants as {plants}"
            key = f"atLeast{number}Reproducing" if stage == PLANT_STAGE_REPRODUCING else ""
            out.append(GoalLifeStageAnywhere(kind, stage, number, told, key=key))
    return out


def bee_goals(hive_needs: tuple[str, ...] = ()) -> list[Goal]:
    """Return the goals of one who lets the bees out."""
    return [
        GoalContainerOpen(
            "bee hive", "bee hive open (after reprod. life stage)", prerequisites=hive_needs
        ),
        GoalInRoomWithObject(
            "adult bee",
            "be in same location as pollinator (after reprod. life stage)",
            prerequisites=_REPRODUCED,
        ),
    ]


class TaskGrowPlant(TaskParametric):
    """A jar of seeds, and flower pots with soil, beside soil or without."""

    COUNT = 126

    def combination(self, world: World, idx: int) -> list[TaskModifier]:
        """Make the jar and the pots."""
        number, pots = divmod(idx, 3)
        kind_number, room_number = divmod(number, len(_ROOMS))
        kind, room = _KINDS[kind_number], _ROOMS[room_number]
        return [
            placed(_seed_jar(world, kind), room),
            TaskValue("seedType", kind),
            TaskValue("location", room),
            *_pots(world, pots),
        ]

    def describe(
        self, given: Notes, idx: int, world: World, goals: list[Goal], unordered: list[Goal]
    ) -> str:
        """Ask for the plant or the fruit."""
        del idx, world
        kind, room = given.text("seedType"), given.text("location")
        unordered += jar_goals(shovel=True)
        unordered += pot_goals(given.texts("containerNames"), kind)
        if self.name == "grow-plant":
            goals += [
                GoalLifeStage(kind, stage, f"focus plant is in {told} stage")
                for stage, told in _STAGES
            ]
            return (
                f"Your task is to grow a {kind} plant from seed. "
                f"Seeds can be found in the {room}. First, focus on a seed. "
                "Then, make changes to the environment that grow the plant until it reaches "
                "the reproduction life stage."
            )
        goals.append(GoalFind(kind, "focus on the grown fruit"))
        unordered += number_goals(kind, 2)
        unordered += bee_goals()
        unordered.append(GoalInRoomWithObject(kind, "be in same location as fruit"))
        return (
            f"Your task is to grow a {kind}. This will require growing several plants, "
            "and them being crosspollinated to produce fruit.  "
            f"Seeds can be found in the {room}. "
            f"To complete the task, focus on the grown {kind}."
        )


def _seed_jar(world: World, kind: str) -> CeramicCup:
    jar = CeramicCup(world)
    jar.name = "seed jar"
    for _ in range(_SEEDS):
        seed = PlantReproduction.create_seed(world, kind)
        assert seed is not None, kind
        jar.add_object(seed)
    return jar


def _pots(world: World, case: int) -> list[TaskModifier]:
    out: list[TaskModifier] = []
    names = []
    for number in range(1, _POTS + 1):
        pot = FlowerPot(world)
        pot.name = f"flower pot {number}"
        names.append(pot.name)
        if case == _SOIL_INSIDE:
            pot.add_object(Soil(world))
        out.append(placed(pot, "greenhouse"))
        if case == _SOIL_BESIDE:
            out.append(placed(Soil(world), "greenhouse"))
    return [*out, TaskValue("containerNames", ",".join(names))]
