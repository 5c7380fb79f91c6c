"""The life cycle of plants: they need soil, water and warmth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.envs.scienceworld.own.life.cycles import DeathStage, LifeCycle, LifeStage
from agentgyms.envs.scienceworld.own.life.flowers import Flower

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.life.living import FloweringThing
    from agentgyms.envs.scienceworld.own.objects.base import EnvObject

PLANT_STAGE_SEED = "seed"
PLANT_STAGE_SEEDLING = "seedling"
PLANT_STAGE_ADULT_PLANT = "adult"
PLANT_STAGE_REPRODUCING = "reproducing"
PLANT_STAGE_DEATH = "dead"

_MAX_WITHOUT_SOIL = 5
_MAX_OUT_OF_TEMPERATURE = 5
_MAX_FLOWERS = 1


class PlantStage(LifeStage):
    """A stage that a plant leaves when its needs were met for a number of ticks."""

    __slots__ = ("plant", "ticks_meeting_criteria")

    def __init__(self, stage_name: str, plant: FloweringThing, lifecycle: LifeCycle) -> None:
        super().__init__(stage_name, plant, lifecycle)
        self.plant = plant
        self.ticks_meeting_criteria = 0


class SeedStage(PlantStage):
    """A seed, which germinates after ten ticks with water and soil."""

    __slots__ = ()

    def tick(self) -> None:
        """Count a tick if there are water and soil."""
        water = self.check_container_has("water")
        if water is None or self.check_container_has("soil") is None:
            return
        self.ticks_meeting_criteria += 1
        if self.ticks_meeting_criteria >= 10:
            water.delete()
            self.lifecycle.change_stage(PLANT_STAGE_SEEDLING)


class GrowingPlantStage(PlantStage):
    """A stage after the seed: without water, soil or warmth a plant is sickly, then dies."""

    __slots__ = ("duration_out_of_temperature", "duration_without_soil", "duration_without_water")

    STAGE_DURATION = 5
    MAX_WITHOUT_WATER = 50

    def __init__(self, stage_name: str, plant: FloweringThing, lifecycle: LifeCycle) -> None:
        super().__init__(stage_name, plant, lifecycle)
        self.duration_without_water = 0
        self.duration_without_soil = 0
        self.duration_out_of_temperature = 0

    def tick(self) -> None:
        """Check the needs, and grow unless one has been missing."""
        water = self.check_container_has("water")
        stressed, sickly = self._drink(water)
        lacks_soil, sick_of_soil = self._root()
        cold_or_hot = self._feel_temperature()
        self.plant.prop_life.is_sickly = sickly or sick_of_soil or cold_or_hot
        # A plant that dies of its temperature is not stressed, so it can still reach the next
        # stage in the same tick and live on.
        if stressed or lacks_soil:
            return
        self.ticks_meeting_criteria += 1
        if self.ticks_meeting_criteria >= self.STAGE_DURATION:
            self.finish(water)

    def _drink(self, water: EnvObject | None) -> tuple[bool, bool]:
        """Count ticks without water and return whether the plant is stressed and sickly."""
        if water is not None:
            self.duration_without_water = 0
            self.consume(water)
            return False, False
        self.duration_without_water += 1
        thirsty = self.duration_without_water >= self.MAX_WITHOUT_WATER // 2
        if self.duration_without_water >= self.MAX_WITHOUT_WATER:
            self.lifecycle.change_stage(PLANT_STAGE_DEATH)
        return self.stressed_by_drought(thirsty), thirsty

    def _root(self) -> tuple[bool, bool]:
        """Count ticks without soil and return whether the plant is stressed and sickly."""
        if self.check_container_has("soil") is not None:
            self.duration_without_soil = 0
            return False, False
        self.duration_without_soil += 1
        if self.duration_without_soil >= _MAX_WITHOUT_SOIL:
            self.lifecycle.change_stage(PLANT_STAGE_DEATH)
        return True, self.duration_without_soil >= _MAX_WITHOUT_SOIL // 2

    def _feel_temperature(self) -> bool:
        """Count ticks that are too cold or hot, and say whether this one is."""
        life, temperature = self.plant.prop_life, self.plant.prop_material.temperature_c
        if life.min_temp < temperature < life.max_temp:
            self.duration_out_of_temperature = 0
            return False
        self.duration_out_of_temperature += 1
        if self.duration_out_of_temperature >= _MAX_OUT_OF_TEMPERATURE:
            self.lifecycle.change_stage(PLANT_STAGE_DEATH)
        return True

    def consume(self, water: EnvObject) -> None:
        """Use the water up."""
        water.delete()

    def stressed_by_drought(self, thirsty: bool) -> bool:
        """Say whether a plant without water stops growing: once it is thirsty."""
        return thirsty

    def finish(self, water: EnvObject | None) -> None:
        """Go on to the next stage."""
        self.lifecycle.change_stage(PLANT_STAGE_REPRODUCING)


class SeedlingStage(GrowingPlantStage):
    """A seedling, which needs water in every tick and uses it up only when it has grown."""

    __slots__ = ()

    STAGE_DURATION = 10
    MAX_WITHOUT_WATER = 20

    def consume(self, water: EnvObject) -> None:
        """Leave the water where it is."""

    def stressed_by_drought(self, thirsty: bool) -> bool:
        """Say whether a plant without water stops growing: at once."""
        return True

    def finish(self, water: EnvObject | None) -> None:
        """Use up the water and become adult."""
        assert water is not None
        water.delete()
        self.lifecycle.change_stage(PLANT_STAGE_ADULT_PLANT)


class ReproducingStage(GrowingPlantStage):
    """An adult plant, which grows a flower when it has none."""

    __slots__ = ()

    def finish(self, water: EnvObject | None) -> None:
        """Grow a flower and begin again."""
        if len(self.plant.contained_objects_of_type(Flower)) < _MAX_FLOWERS:
            self.plant.add_object(Flower(self.plant.world, self.plant))
        self.ticks_meeting_criteria = 0


class PlantDeathStage(DeathStage):
    """A dead plant, which loses flowers and fruits."""

    __slots__ = ()

    def drop(self, obj: EnvObject, parent: EnvObject) -> None:
        """Delete a flower and keep its contents, or move another thing to the container."""
        if isinstance(obj, Flower):
            obj.move_all_contained_objects(parent)
            obj.delete()
        else:
            parent.add_object(obj)


class PlantLifeStages:
    """The names of a plant's stages, and its life cycle's maker."""

    PLANT_STAGE_SEED = PLANT_STAGE_SEED
    PLANT_STAGE_SEEDLING = PLANT_STAGE_SEEDLING
    PLANT_STAGE_ADULT_PLANT = PLANT_STAGE_ADULT_PLANT
    PLANT_STAGE_REPRODUCING = PLANT_STAGE_REPRODUCING
    PLANT_STAGE_DEATH = PLANT_STAGE_DEATH

    @staticmethod
    def is_seed(lifecycle: LifeCycle) -> bool:
        """Say whether a life cycle is at its seed."""
        return lifecycle.cur_stage_name() == PLANT_STAGE_SEED

    @staticmethod
    def mk_plant_life_cycle(plant: FloweringThing) -> LifeCycle:
        """Return a plant's life cycle at its seed."""
        lifecycle = LifeCycle("plant life cycle")
        lifecycle.add_stage(SeedStage(PLANT_STAGE_SEED, plant, lifecycle), is_default=True)
        lifecycle.add_stage(SeedlingStage(PLANT_STAGE_SEEDLING, plant, lifecycle))
        lifecycle.add_stage(GrowingPlantStage(PLANT_STAGE_ADULT_PLANT, plant, lifecycle))
        lifecycle.add_stage(ReproducingStage(PLANT_STAGE_REPRODUCING, plant, lifecycle))
        lifecycle.add_stage(PlantDeathStage(PLANT_STAGE_DEATH, plant, lifecycle))
        return lifecycle
