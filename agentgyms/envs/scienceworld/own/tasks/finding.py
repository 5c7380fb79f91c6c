"""Finding an animal, a plant, a living thing or one that is not alive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentgyms.envs.scienceworld.own.goals.base import Goal
from agentgyms.envs.scienceworld.own.goals.contents import GoalObjectInContainer
from agentgyms.envs.scienceworld.own.goals.finds import (
    GoalFocusOnAnimal,
    GoalFocusOnLivingThing,
    GoalFocusOnNonlivingThing,
    GoalFocusOnPlant,
)
from agentgyms.envs.scienceworld.own.goals.places import (
    GoalInRoomWithOpenDoor,
    GoalMoveToLocation,
    GoalMoveToNewLocation,
)
from agentgyms.envs.scienceworld.own.life import animals, trees
from agentgyms.envs.scienceworld.own.life.crossed import PeaPlant
from agentgyms.envs.scienceworld.own.life.plant_stages import PLANT_STAGE_ADULT_PLANT
from agentgyms.envs.scienceworld.own.life.plants import Plant, Soil
from agentgyms.envs.scienceworld.own.objects.containers import FlowerPot
from agentgyms.envs.scienceworld.own.objects.taskitems import AnswerBox
from agentgyms.envs.scienceworld.own.tasks.answers import COLORS
from agentgyms.envs.scienceworld.own.tasks.draws import shuffled
from agentgyms.envs.scienceworld.own.tasks.modifiers import TaskModifier, TaskValue, placed
from agentgyms.envs.scienceworld.own.tasks.parametric import Notes, TaskParametric, skip_draws

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.world import World

ANIMALS: Final[tuple[type[animals.Animal], ...]] = (
    animals.Butterfly,
    animals.Moth,
    animals.Frog,
    animals.Toad,
    animals.GiantTortoise,
    animals.Turtle,
    animals.Crocodile,
    animals.Parrot,
    animals.Dove,
    animals.BlueJay,
    animals.Elephant,
    animals.BrownBear,
    animals.Beaver,
    animals.Wolf,
)
"""The animals that tasks draw others from."""

_PLANTS: Final[tuple[type[Plant], ...]] = (
    trees.AppleTree,
    trees.AvocadoTree,
    trees.BananaTree,
    trees.CherryTree,
    trees.LemonTree,
    trees.OrangeTree,
    trees.PeachTree,
    PeaPlant,
)
_ROOMS: Final = ("kitchen", "bathroom", "living room", "bedroom", "workshop")
_PEA_DRAWS, _POT_DRAWS = 8, 8
_THINGS: Final = 3  # as many animals, and as many plants
_POTS: Final = 5

_MODES: Final[dict[str, tuple[str, type[Goal], str]]] = {
    "find-living-thing": ("living thing", GoalFocusOnLivingThing, "focus on a living thing"),
    "find-non-living-thing": (
        "non-living thing",
        GoalFocusOnNonlivingThing,
        "focus on a non-living thing",
    ),
    "find-plant": ("plant", GoalFocusOnPlant, "focus on a plant"),
    "find-animal": ("animal", GoalFocusOnAnimal, "focus on an animal"),
}


def random_animals(world: World, room: str, number: int, seed: int) -> list[TaskModifier]:
    """Return different animals for a room."""
    chosen = shuffled(range(len(ANIMALS)), seed)[:number]
    made = {at: ANIMALS[at](world) for at in sorted(chosen)}  # in this order they get numbers
    return [placed(made[at], room) for at in chosen]


def _potted_plants(world: World, room: str, seed: int) -> list[TaskModifier]:
    chosen = shuffled(range(len(_PLANTS)), seed)[:_THINGS]
    plants = {}
    for at, kind in enumerate(_PLANTS):
        if at in chosen:
            plants[at] = kind(world)
        elif kind is PeaPlant:
            skip_draws(world, _PEA_DRAWS)
    numbers = world.random.shuffle(range(1, 10))
    pots = {at: _pot_of(world, plant) for at, plant in plants.items()}
    out: list[TaskModifier] = []
    for at, number in zip(chosen, numbers, strict=False):
        pots[at].name = f"flower pot {number}"
        out.append(placed(pots[at], room, force=True))
    for number in numbers[_THINGS:_POTS]:
        pot = FlowerPot(world)
        pot.name = f"flower pot {number}"
        out.append(placed(pot, room, force=True))
    return out


def _pot_of(world: World, plant: Plant) -> FlowerPot:
    pot = FlowerPot(world)
    plant.lifecycle.change_stage(PLANT_STAGE_ADULT_PLANT, fail_gracefully=True)
    pot.add_object(plant)
    pot.add_object(Soil(world))
    return pot


class TaskFindLivingNonLiving(TaskParametric):
    """Animals outside, plants in the greenhouse, and an answer box anywhere."""

    COUNT = 300
    DRAWS = 160

    def combination(self, world: World, idx: int) -> list[TaskModifier]:
        """Make animals, plants and the box."""
        number, box_number = divmod(idx, len(_ROOMS) * len(COLORS))
        room_number, color_number = divmod(box_number, len(COLORS))
        skip_draws(world, number * (_PEA_DRAWS + _POT_DRAWS))
        out = random_animals(world, "outside", _THINGS, number)
        out += _potted_plants(world, "greenhouse", number)
        box, room = AnswerBox(world, COLORS[color_number]), _ROOMS[room_number]
        return [
            *out,
            placed(box, room),
            TaskValue("location", room),
            TaskValue("answerBox", box.name),
        ]

    def describe(
        self, given: Notes, idx: int, world: World, goals: list[Goal], unordered: list[Goal]
    ) -> str:
        """Ask for a thing of the kind."""
        del idx, world
        box, room = given.text("answerBox"), given.text("location")
        asked, kind, focus = _MODES[self.name]
        goals += [kind(focus), GoalObjectInContainer(box, "move living thing to answer box")]
        unordered += [
            GoalObjectInContainer("inventory", "Pick up object"),
            GoalInRoomWithOpenDoor("Be in a room with an open door"),
            GoalMoveToNewLocation("Move to a new location"),
            GoalMoveToLocation(room, "Move to the location of the answer box"),
        ]
        return (
            f"Your task is to find a(n) {asked}. First, focus on the thing. "
            f"Then, move it to the {box} in the {room}."
        )
