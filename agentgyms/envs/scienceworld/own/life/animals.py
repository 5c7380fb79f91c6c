"""Animals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.envs.scienceworld.own.life.animal_stages import (
    ANIMAL_CYCLE,
    BIRD_CYCLE,
    BUTTERFLY_CYCLE,
    FROG_CYCLE,
    TORTOISE_CYCLE,
    AnimalCycle,
)
from agentgyms.envs.scienceworld.own.life.living import LivingThing
from agentgyms.envs.scienceworld.own.life.properties import LifeProperties
from agentgyms.envs.scienceworld.own.objects.base import MODE_CURSORY_DETAIL
from agentgyms.envs.scienceworld.own.sets import FrozenSet

if TYPE_CHECKING:
    from typing import Self

    from agentgyms.envs.scienceworld.own.life.cycles import LifeCycle
    from agentgyms.envs.scienceworld.own.world import World


class Animal(LivingThing):
    """An animal, which grows up and dies; it is named after its stage and kind."""

    lifecycle: LifeCycle
    prop_life: LifeProperties

    NAME = "animal"
    LIFESPAN = 0.0  # in years, a single in the real engine
    CYCLE: AnimalCycle = ANIMAL_CYCLE

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.name = self.NAME
        self.prop_life = LifeProperties(self.NAME, self.LIFESPAN)
        self.lifecycle = self.CYCLE.make(self)

    @classmethod
    def mk_examples_at_life_stages(cls, world: World) -> list[Self]:
        """Return an animal at each stage."""
        # The real engine makes one animal more, to see the stages, which takes identifiers.
        stages = [stage.stage_name for stage in cls.CYCLE.make(Animal(world)).stages]
        examples = []
        for stage in stages:
            animal = cls(world)
            animal.lifecycle.change_stage(stage)
            examples.append(animal)
        return examples

    def tick(self) -> bool:
        """Live on by a tick."""
        # The life cycle goes on even in a tick that was processed already.
        self.lifecycle.tick()
        return super().tick()

    def canonical_name(self) -> str:
        """Return the stage's own name, or stage and kind."""
        stage = self.lifecycle.cur_stage()
        if stage.has_canonical_name():
            return stage.canonical_name()
        kind = self.prop_life.lifeform_type
        return f"{kind} egg" if stage.stage_name == "egg" else f"{stage.stage_name} {kind}"

    def descript_name(self, override_name: str = "") -> str:
        """Return the name with its stage."""
        return super().descript_name(override_name or self.canonical_name())

    def referents(self) -> FrozenSet[str]:
        """Return the names by which commands may call it."""
        stage, descript = self.lifecycle.cur_stage_name(), self.descript_name()
        return FrozenSet(
            (
                "living thing",
                "organism",
                self.name,
                descript,
                f"{stage} {self.name}",
                f"{stage} {descript}",
            )
        )

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Return its text."""
        text = f"a {self.descript_name()}"
        if self.prop_life.is_sickly and not self.prop_life.is_dead:
            text += " (that looks unwell)"
        return text


class GiantTortoise(Animal):
    """A giant tortoise."""

    NAME = "giant tortoise"
    LIFESPAN = 150.0
    CYCLE = TORTOISE_CYCLE


class Turtle(Animal):
    """A turtle."""

    NAME = "turtle"
    LIFESPAN = 30.0
    CYCLE = TORTOISE_CYCLE


class Parrot(Animal):
    """A parrot."""

    NAME = "parrot"
    LIFESPAN = 80.0
    CYCLE = BIRD_CYCLE


class Elephant(Animal):
    """An elephant."""

    NAME = "elephant"
    LIFESPAN = 70.0


class Crocodile(Animal):
    """A crocodile."""

    NAME = "crocodile"
    LIFESPAN = 45.0
    CYCLE = TORTOISE_CYCLE


class BrownBear(Animal):
    """A brown bear."""

    NAME = "brown bear"
    LIFESPAN = 30.0


class Beaver(Animal):
    """A beaver."""

    NAME = "beaver"
    LIFESPAN = 16.0


class Wolf(Animal):
    """A wolf."""

    NAME = "wolf"
    LIFESPAN = 14.0


class Chipmunk(Animal):
    """A chipmunk."""

    NAME = "chipmunk"
    LIFESPAN = 12.0


class Toad(Animal):
    """A common toad."""

    NAME = "common toad"
    LIFESPAN = 10.0
    CYCLE = FROG_CYCLE


class Rabbit(Animal):
    """A rabbit."""

    NAME = "rabbit"
    LIFESPAN = 9.0


class Mouse(Animal):
    """A mouse."""

    NAME = "mouse"
    LIFESPAN = 4.0


class Chameleon(Animal):
    """A chameleon."""

    NAME = "chameleon"
    LIFESPAN = 3.0
    CYCLE = TORTOISE_CYCLE


class Dragonfly(Animal):
    """A dragonfly."""

    NAME = "dragonfly"
    LIFESPAN = 0.4000000059604645


class Ant(Animal):
    """An ant."""

    NAME = "ant"
    LIFESPAN = 0.10000000149011612


class Hedgehog(Animal):
    """A hedgehog."""

    NAME = "hedgehog"
    LIFESPAN = 5.0


class Butterfly(Animal):
    """A butterfly."""

    NAME = "butterfly"
    LIFESPAN = 0.10000000149011612
    CYCLE = BUTTERFLY_CYCLE


class Moth(Animal):
    """A moth."""

    NAME = "moth"
    LIFESPAN = 0.20000000298023224
    CYCLE = BUTTERFLY_CYCLE


class Frog(Animal):
    """A frog."""

    NAME = "frog"
    LIFESPAN = 6.0
    CYCLE = FROG_CYCLE


class Dove(Animal):
    """A dove."""

    NAME = "dove"
    LIFESPAN = 2.0
    CYCLE = BIRD_CYCLE


class BlueJay(Animal):
    """A blue jay."""

    NAME = "blue jay"
    LIFESPAN = 7.0
    CYCLE = BIRD_CYCLE
