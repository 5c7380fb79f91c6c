"""Life spans of animals, and stages of the lives of animals and plants."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Final

from agentgyms.envs.scienceworld.own.goals.base import Goal
from agentgyms.envs.scienceworld.own.goals.finds import GoalFind, GoalFindLivingThingStage
from agentgyms.envs.scienceworld.own.goals.places import (
    GoalMoveToLocation,
    GoalMoveToNewLocation,
    GoalStayInLocation,
)
from agentgyms.envs.scienceworld.own.life import animals, trees
from agentgyms.envs.scienceworld.own.life.living import LivingThing
from agentgyms.envs.scienceworld.own.life.plants import Soil
from agentgyms.envs.scienceworld.own.objects.containers import SelfWateringFlowerPot
from agentgyms.envs.scienceworld.own.tasks.draws import shuffled
from agentgyms.envs.scienceworld.own.tasks.finding import ANIMALS, random_animals
from agentgyms.envs.scienceworld.own.tasks.modifiers import TaskModifier, TaskValue, placed
from agentgyms.envs.scienceworld.own.tasks.parametric import Notes, TaskParametric, skip_draws

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.world import World

_OUTSIDE: Final = "outside"
_MOVED: Final = "Move to a new location (unless starting in task location)"
_ARRIVED: Final = "Move to the location asked by the task"

_LONG: Final = (
    animals.GiantTortoise,
    animals.Parrot,
    animals.Elephant,
    animals.Crocodile,
    animals.BrownBear,
)
_MEDIUM: Final = (
    animals.Beaver,
    animals.Wolf,
    animals.Chipmunk,
    animals.Toad,
    animals.Rabbit,
)
_SHORT: Final = (
    animals.Hedgehog,
    animals.Mouse,
    animals.Chameleon,
    animals.Dragonfly,
    animals.Ant,
)
_SPANS: Final = shuffled(list(product(range(5), repeat=3)), 0)


class TaskLifeSpan(TaskParametric):
    """Three animals, of which one lives longest and one shortest."""

    COUNT = 125

    def combination(self, world: World, idx: int) -> list[TaskModifier]:
        """Make the animals."""
        out: list[TaskModifier] = []
        kinds = zip(("long", "medium", "short"), (_LONG, _MEDIUM, _SHORT), _SPANS[idx], strict=True)
        for key, choice, number in kinds:
            animal = choice[number](world)
            out += [placed(animal, _OUTSIDE), TaskValue(key, animal.name)]
            if key == "long":
                out.append(TaskValue("location", _OUTSIDE))
        return out

    def describe(
        self, given: Notes, idx: int, world: World, goals: list[Goal], unordered: list[Goal]
    ) -> str:
        """Ask for the animal of the longest or shortest life, or for both."""
        del idx, world
        room = given.text("location")
        asked = [span for span in ("longest", "shortest") if f"-{span}-" in self.name]
        for at, span in enumerate(asked):
            name = given.text("long" if span == "longest" else "short")
            focus = f"focus on animal with {span} life span"
            goals.append(GoalFind(name, focus, defocus_on_success=at + 1 < len(asked)))
        unordered += [GoalMoveToNewLocation(_MOVED, room), GoalMoveToLocation(room, _ARRIVED)]
        if len(asked) == 1:
            return (
                f"Your task is to find the animal with the {asked[0]} life span.  "
                f"The animals are in the '{room}' location.  "
                f"Focus on the animal with the {asked[0]} life span."
            )
        return (
            "Your task is to find the animal with the longest life span, "
            "then the shortest life span. "
            "First, focus on the animal with the longest life span.  "
            "Then, focus on the animal with the shortest life span. "
            f"The animals are in the '{room}' location. "
        )


def _stage_notes(living_thing: LivingThing) -> list[TaskModifier]:
    """Return the stages of a life as notes, without the last, which is death."""
    assert living_thing.lifecycle is not None, living_thing
    stages = [stage.stage_name for stage in living_thing.lifecycle.stages[:-1]]
    return [TaskValue(f"stage{at}", stage) for at, stage in enumerate(stages, 1)]


def _stage_goals(
    given: Notes, species: str, unless: str, goals: list[Goal], unordered: list[Goal], what: str
) -> None:
    for at, stage in enumerate(given.stages(), 1):
        focus = f"focus on {what} in life stage {at}"
        goals.append(GoalFindLivingThingStage(species, stage, focus, defocus_on_success=True))
    room = given.text("location")
    unordered += [GoalMoveToNewLocation(_MOVED, unless), GoalMoveToLocation(room, _ARRIVED)]
    unordered += [
        GoalStayInLocation(room, steps, f"Stay in goal location for {steps} steps")
        for steps in (10, 20, 30)
    ]


_ANIMAL_ORDER: Final = shuffled(range(len(ANIMALS)), 1)
_DISTRACTORS: Final = 5


class TaskIdentifyLifeStages1(TaskParametric):
    """An animal that grows up among others."""

    COUNT = 14

    def combination(self, world: World, idx: int) -> list[TaskModifier]:
        """Make the animal and the others."""
        number = _ANIMAL_ORDER[idx]
        animal = ANIMALS[number](world)
        return [
            placed(animal, _OUTSIDE),
            TaskValue("animal", animal.name),
            TaskValue("location", _OUTSIDE),
            *_stage_notes(animal),
            *random_animals(world, _OUTSIDE, _DISTRACTORS, number),
        ]

    def describe(
        self, given: Notes, idx: int, world: World, goals: list[Goal], unordered: list[Goal]
    ) -> str:
        """Ask for the stages of the animal's life."""
        del idx, world
        animal = given.text("animal")
        _stage_goals(given, animal, given.text("location"), goals, unordered, "animal")
        return (
            f"Your task is to focus on the {len(goals)} life stages of the {animal}, "
            "starting from earliest to latest."
        )


_TREES: Final = (
    (trees.AppleTree, 0),
    (trees.ApricotTree, 6),
    (trees.AvocadoTree, 1),
    (trees.BananaTree, 2),
    (trees.CherryTree, 3),
    (trees.GrapefruitTree, 6),
    (trees.LemonTree, 4),
    (trees.OrangeTree, 5),
    (trees.PeachTree, 6),
    (trees.PearTree, 6),
)
"""The trees, and the seed that draws the animal which is there too."""

_POT_DRAWS: Final = 8


class TaskIdentifyLifeStages2(TaskParametric):
    """A kind of tree in all stages of its life, and an animal in all stages of its."""

    COUNT = 10
    DRAWS = 80

    def combination(self, world: World, idx: int) -> list[TaskModifier]:
        """Make the trees in pots, and the animals."""
        kind, seed = _TREES[idx]
        skip_draws(world, idx * _POT_DRAWS)
        tree, examples = kind(world), kind.mk_examples_at_life_stages(world)
        numbers = world.random.shuffle(range(1, 10))
        out: list[TaskModifier] = []
        for example, number in zip(examples, numbers, strict=False):
            pot = SelfWateringFlowerPot(world)
            pot.add_object(Soil(world))
            pot.add_object(example)
            pot.name = f"self watering flower pot {number}"
            out.append(placed(pot, _OUTSIDE, force=True))
        out.append(TaskValue("livingThingName", tree.prop_life.lifeform_type))
        out.append(TaskValue("location", _OUTSIDE))
        out += _stage_notes(tree)
        other = shuffled(ANIMALS, seed)[0]
        examples_of_other = other.mk_examples_at_life_stages(world)
        return [*out, *(placed(animal, _OUTSIDE, force=True) for animal in examples_of_other)]

    def describe(
        self, given: Notes, idx: int, world: World, goals: list[Goal], unordered: list[Goal]
    ) -> str:
        """Ask for the stages of the tree's life."""
        del idx, world
        # The engine takes the plant's name for that of the location where one need not move.
        plant = given.text("livingThingName")
        _stage_goals(given, plant, plant, goals, unordered, "plant")
        return (
            f"Your task is to focus on the life stages of the {plant} plant, "
            "starting from earliest to latest. "
            f"The plants are located {given.text('location')}."
        )
