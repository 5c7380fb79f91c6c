"""Finding out whether a trait of a plant is dominant or recessive."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from agentgyms.envs.scienceworld.own.goals.base import Goal
from agentgyms.envs.scienceworld.own.goals.finds import GoalFind
from agentgyms.envs.scienceworld.own.goals.places import GoalInRoomWithObject
from agentgyms.envs.scienceworld.own.life import crossed
from agentgyms.envs.scienceworld.own.life.genetics import GeneticTrait
from agentgyms.envs.scienceworld.own.life.plants import Soil
from agentgyms.envs.scienceworld.own.objects.containers import CeramicCup, FlowerPot
from agentgyms.envs.scienceworld.own.tasks.answers import answer_boxes
from agentgyms.envs.scienceworld.own.tasks.growing import (
    bee_goals,
    jar_goals,
    number_goals,
    pot_goals,
)
from agentgyms.envs.scienceworld.own.tasks.modifiers import TaskModifier, TaskValue, placed
from agentgyms.envs.scienceworld.own.tasks.parametric import Notes, TaskParametric, skip_draws

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.world import World

_ROOM: Final = "greenhouse"
_POT_SETS, _BOX_PAIRS, _POTS = 5, 3, 6
_POT_DRAWS: Final = 8
_REPRODUCED: Final = ("atLeast2Reproducing",)


class _Jar(NamedTuple):
    """A jar with two seeds that differ in a trait, and how many draws come before it."""

    plant: type[crossed.CrossedPlant]
    trait: str
    dom_or_rec: str
    draws_before: int


class _Mendel(TaskParametric):
    JARS: ClassVar[list[_Jar]]

    def combination(self, world: World, idx: int) -> list[TaskModifier]:
        number, rest = divmod(idx, _POT_SETS * _BOX_PAIRS)
        pots, boxes = divmod(rest, _BOX_PAIRS)
        made = self.JARS[number]
        start = world.random.state
        skip_draws(world, made.draws_before)
        out = self._jar(world, made)
        world.random.state = start
        skip_draws(world, self.DRAWS - (_POT_SETS - pots) * _POT_DRAWS)
        out += _pots(world)
        return [*out, *answer_boxes(world, _ROOM, boxes, "answerBoxDom", "answerBoxRec")]

    def _jar(self, world: World, made: _Jar) -> list[TaskModifier]:
        jar = CeramicCup(world)
        jar.name = "seed jar"
        for allele in (GeneticTrait.DOMINANT, GeneticTrait.RECESSIVE):
            genes = made.plant.TRAITS.mk_random_chromosome_pair_except(
                world, made.trait, allele, allele
            )
            jar.add_object(made.plant(world, genes))
        values = next(trait for trait in made.plant.TRAITS.traits if trait[0] == made.trait)
        value = values[1] if made.dom_or_rec == GeneticTrait.DOMINANT else values[2]
        kind = made.plant.LIFEFORM_TYPE
        return [
            placed(jar, _ROOM, force=True),
            TaskValue("domOrRec", made.dom_or_rec),
            TaskValue("traitName", made.trait),
            TaskValue("traitValue", value),
            TaskValue("plantName", f"{made.plant.NAME} plant"),
            TaskValue("seedType", kind),
        ]

    def describe(
        self, given: Notes, idx: int, world: World, goals: list[Goal], unordered: list[Goal]
    ) -> str:
        del idx, world
        boxes = given.text("answerBoxDom"), given.text("answerBoxRec")
        right = boxes[given.text("domOrRec") != GeneticTrait.DOMINANT]
        kind = given.text("seedType")
        goals.append(GoalFind(right, "focus on the correct answer box", defocus_on_success=True))
        unordered += jar_goals(shovel=False)
        unordered += pot_goals(given.texts("flowerPotNames"), kind)
        unordered += number_goals(kind, 6)
        unordered += bee_goals(hive_needs=_REPRODUCED)
        grown = "be in same location as grown seed"
        unordered.append(GoalInRoomWithObject(kind, grown, prerequisites=_REPRODUCED))
        return (
            f"Your task is to determine whether {given.text('traitValue')} "
            f"{given.text('traitName')} is a dominant or recessive trait "
            f"in the {given.text('plantName')}. "
            f"If the trait is dominant, focus on the {boxes[0]}. "
            f"If the trait is recessive, focus on the {boxes[1]}. "
        )


def _pots(world: World) -> list[TaskModifier]:
    numbers = world.random.shuffle(range(1, 10))[:_POTS]
    pots = {}
    for number in sorted(numbers):
        pots[number] = FlowerPot(world)
        pots[number].name = f"flower pot {number}"
        pots[number].add_object(Soil(world))
    names = ",".join(pots[number].name for number in numbers)
    out: list[TaskModifier] = [placed(pots[number], _ROOM) for number in numbers]
    return [*out, TaskValue("flowerPotNames", names)]


def _jars(
    plant: type[crossed.CrossedPlant], traits: tuple[str, ...], draws_before: int, draws: int
) -> list[_Jar]:
    alleles = (GeneticTrait.DOMINANT, GeneticTrait.RECESSIVE)
    pairs = [(trait, allele) for trait in traits for allele in alleles]
    return [_Jar(plant, *pair, draws_before + at * draws) for at, pair in enumerate(pairs)]


_SHAPE: Final = GeneticTrait.TRAIT_SEED_SHAPE


class TaskMendelianGenetics1(_Mendel):
    """Peas; the engine has the shape of their seeds twice and the color of flowers not at all."""

    COUNT = 120
    DRAWS = 140
    JARS: ClassVar = _jars(
        crossed.PeaPlant,
        (GeneticTrait.TRAIT_PLANT_HEIGHT, _SHAPE, GeneticTrait.TRAIT_SEED_COLOR, _SHAPE),
        draws_before=4,
        draws=12,
    )


_UNKNOWN: Final[tuple[type[crossed.CrossedPlant], ...]] = (
    crossed.RandomGeneticsPlantsE,
    crossed.RandomGeneticsPlantsB,
    crossed.RandomGeneticsPlantsC,
    crossed.RandomGeneticsPlantsD,
)
_PLANT_DRAWS, _JAR_DRAWS = 36, 28  # for two plants that only give their names, and for a jar
_KIND_DRAWS: Final = _PLANT_DRAWS + 8 * _JAR_DRAWS


class TaskMendelianGenetics2(_Mendel):
    """Plants that exist only here."""

    COUNT = 480
    DRAWS = 1080
    JARS: ClassVar = [
        jar
        for at, plant in enumerate(_UNKNOWN)
        for jar in _jars(
            plant,
            tuple(trait[0] for trait in plant.TRAITS.traits),
            draws_before=at * _KIND_DRAWS + _PLANT_DRAWS,
            draws=_JAR_DRAWS,
        )
    ]
