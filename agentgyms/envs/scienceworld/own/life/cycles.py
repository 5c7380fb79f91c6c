"""Life cycles: a living thing is in one of several stages, and each tick may change it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.objects.base import EnvObject


class LifeStage:
    """One stage of a life cycle; `canonical_name`, if any, replaces stage and kind in names."""

    __slots__ = ("_canonical_name", "lifecycle", "obj", "stage_name")

    def __init__(
        self, stage_name: str, obj: EnvObject, lifecycle: LifeCycle, canonical_name: str = ""
    ) -> None:
        self.stage_name = stage_name
        self.obj = obj
        self.lifecycle = lifecycle
        self._canonical_name = canonical_name

    def canonical_name(self) -> str:
        """Return the name that a thing in this stage goes by, "" for none of its own."""
        return self._canonical_name

    def has_canonical_name(self) -> bool:
        """Say whether things in this stage have a name of their own."""
        return bool(self._canonical_name)

    def tick(self) -> None:
        """Do nothing: stages that change something say so."""

    def check_container_has(self, obj_name: str) -> EnvObject | None:
        """Return the first thing of this name that lies where this stage's thing lies."""
        container = self.obj.container()
        if container is None:
            return None
        for obj in container.contained_objects():
            if obj.name == obj_name:
                return obj
        return None


class LifeCycle:
    """The stages of one living thing, and the index of its current one."""

    __slots__ = ("cur_stage_index", "life_cycle_name", "stages")

    def __init__(self, life_cycle_name: str) -> None:
        self.life_cycle_name = life_cycle_name
        self.stages: list[LifeStage] = []
        self.cur_stage_index = 0

    def add_stage(self, stage: LifeStage, is_default: bool = False) -> None:
        """Append a stage; with `is_default` it is the current one."""
        self.stages.append(stage)
        if is_default:
            self.cur_stage_index = len(self.stages) - 1

    def cur_stage(self) -> LifeStage:
        """Return the current stage."""
        return self.stages[self.cur_stage_index]

    def cur_stage_name(self) -> str:
        """Return the current stage's name."""
        return self.stages[self.cur_stage_index].stage_name

    def change_stage(self, stage_name: str, fail_gracefully: bool = False) -> None:
        """Make the first stage of this name the current one."""
        for i, stage in enumerate(self.stages):
            if stage.stage_name == stage_name:
                self.cur_stage_index = i
                return
        if not fail_gracefully:
            raise ValueError(f"stage {stage_name!r} is not in {self.life_cycle_name!r}")

    def tick(self) -> None:
        """Tick the current stage."""
        self.stages[self.cur_stage_index].tick()


class DeathStage(LifeStage):
    """The last stage of an animal: whatever it carries falls to where it lies."""

    __slots__ = ()

    def tick(self) -> None:
        """Mark the thing as dead and drop what it contains."""
        life = self.obj.prop_life
        assert life is not None
        life.is_dead = True
        parent = self.obj.container()
        if parent is not None:
            # Its hidden terminals are among these, so they end up in the container too.
            for obj in self.obj.contained_objects_and_portals():
                self.drop(obj, parent)

    def drop(self, obj: EnvObject, parent: EnvObject) -> None:
        """Move one contained thing to the container."""
        parent.add_object(obj)
