"""Life cycles of animals: the same clockwork with other names and times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentgyms.envs.scienceworld.own.life.cycles import DeathStage, LifeCycle, LifeStage

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.life.living import LivingThing

_YOUNG_TICKS = 20
_ADULT_TICKS = 50


class GrowingStage(LifeStage):
    """A stage that ends after a number of ticks, or never where no stage comes next."""

    __slots__ = ("next_stage", "stage_duration", "ticks_meeting_criteria")

    def __init__(
        self,
        stage_name: str,
        obj: LivingThing,
        lifecycle: LifeCycle,
        canonical_name: str,
        stage_duration: int,
        next_stage: str | None,
    ) -> None:
        super().__init__(stage_name, obj, lifecycle, canonical_name)
        self.ticks_meeting_criteria = 0
        self.stage_duration = stage_duration
        self.next_stage = next_stage

    def tick(self) -> None:
        """Grow older by a tick."""
        self.ticks_meeting_criteria += 1
        if self.next_stage is not None and self.ticks_meeting_criteria >= self.stage_duration:
            self.lifecycle.change_stage(self.next_stage)


@dataclass(frozen=True)
class AnimalCycle:
    """A kind of animals' life cycle: its name, and stage and canonical name of each stage."""

    name: str
    stages: tuple[tuple[str, str], ...]
    forever: bool = False  # an adult stays adult

    def make(self, animal: LivingThing) -> LifeCycle:
        """Return a life cycle at its first stage."""
        lifecycle = LifeCycle(self.name)
        adult, last = len(self.stages) - 2, len(self.stages) - 1
        for i, (name, canonical) in enumerate(self.stages):
            if i == last:
                lifecycle.add_stage(DeathStage(name, animal, lifecycle, canonical))
                continue
            ticks = _ADULT_TICKS if i == adult else _YOUNG_TICKS
            following = None if self.forever else self.stages[i + 1][0]
            stage = GrowingStage(name, animal, lifecycle, canonical, ticks, following)
            lifecycle.add_stage(stage, is_default=i == 0)
        return lifecycle


ANIMAL_CYCLE = AnimalCycle(
    "animal life cycle", (("baby", ""), ("juvenile", ""), ("adult", ""), ("dead", ""))
)
BIRD_CYCLE = AnimalCycle(
    "bird life cycle",
    (("egg", ""), ("hatchling", ""), ("juvenile", ""), ("adult", ""), ("dead", "")),
)
TORTOISE_CYCLE = AnimalCycle(
    "tortoise life cycle",
    (("egg", ""), ("hatchling", ""), ("juvenile", ""), ("adult", ""), ("dead", "")),
)
BUTTERFLY_CYCLE = AnimalCycle(
    "butterfly life cycle",
    (
        ("egg", "butterfly egg"),
        ("caterpillar", "caterpillar"),
        ("pupa", "butterfly pupa"),
        ("adult", "adult butterfly"),
        ("death", "dead butterfly"),
    ),
)
FROG_CYCLE = AnimalCycle(
    "frog life cycle",
    (
        ("egg", "frog egg"),
        ("tadpole", "tadpole"),
        ("adult", "adult frog"),
        ("death", "dead frog"),
    ),
)
ADULT_FOREVER_CYCLE = AnimalCycle(
    "adult forever life cycle", (("adult", ""), ("dead", "")), forever=True
)
