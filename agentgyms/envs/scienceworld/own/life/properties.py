"""Properties that living things and flowers have."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.life.genetics import ChromosomePair


class LifeProperties:
    """A living thing's kind, the temperatures that it bears, and its health."""

    __slots__ = (
        "is_dead",
        "is_sickly",
        "lifeform_type",
        "lifespan_typical",
        "max_temp",
        "min_temp",
    )

    def __init__(self, lifeform_type: str = "", lifespan_typical: float = 0.0) -> None:
        self.lifeform_type = lifeform_type
        self.min_temp = 0.0
        self.max_temp = 50.0
        self.is_sickly = False
        self.is_dead = False
        self.lifespan_typical = lifespan_typical  # in years; the simulation never uses it


class PollinationProperties:
    """How far a flower is on its way to a fruit: at step 0 no pollen has reached it."""

    __slots__ = ("parent2_chromosome_pairs", "pollination_step", "steps_until_fruiting_body_forms")

    def __init__(self) -> None:
        self.pollination_step = 0
        self.steps_until_fruiting_body_forms = 5
        self.parent2_chromosome_pairs: ChromosomePair | None = None
