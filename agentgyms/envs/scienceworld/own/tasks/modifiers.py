"""What a task changes in the house, and what it notes for its goals."""

from __future__ import annotations

from dataclasses import dataclass

from agentgyms.envs.scienceworld.own.objects.base import EnvObject
from agentgyms.envs.scienceworld.own.properties import MaterialProperties

Value = str | bool | float | int


@dataclass(slots=True)
class TaskObject:
    """A thing that a room needs for a task.

    `instance` is None if the house has one anyway. Without `containers` it lies in the room.
    `force` adds it even where a thing with the name is.
    """

    name: str
    instance: EnvObject | None
    room: str
    containers: tuple[str, ...] = ()
    force: bool = False

    def run_modifier(self, universe: EnvObject) -> bool:
        """Add the thing if it is missing; tell whether there is such a room."""
        if self.instance is None:
            return True
        for room in universe.contained_objects(include_hidden=False):
            if room.name == self.room:
                self._add(room, self.instance)
                return True
        return False

    def _add(self, room: EnvObject, instance: EnvObject) -> None:
        if not self.force and self._is_there(room):
            return
        if not self.containers:
            room.add_object(instance)
            return
        contained = sorted(room.contained_objects_recursive(), key=lambda obj: obj.uuid)
        for obj in room.world.random.shuffle(contained):
            if obj.name in self.containers:
                obj.add_object(instance)
                return

    def _is_there(self, room: EnvObject) -> bool:
        holders = [room]
        if self.containers:
            holders = [obj for obj in room.contained_objects() if obj.name in self.containers]
        return any(
            obj.name == self.name
            for holder in holders
            for obj in holder.contained_objects_recursive()
        )


@dataclass(slots=True)
class TaskDisable:
    """Breaks all devices with a name in a room."""

    name: str
    room: str

    def run_modifier(self, universe: EnvObject) -> bool:
        """Break them; tell whether there was one."""
        found = False
        for obj in universe.contained_objects_and_portals_recursive():
            if obj.name != self.name or obj.prop_device is None:
                continue
            if any(holder.name == self.room for holder in obj.containers_recursive()):
                obj.prop_device.is_broken = True
                found = True
        return found


@dataclass(slots=True)
class TaskValue:
    """A note of the task for its goals and its solution."""

    key: str
    value: Value

    def run_modifier(self, universe: EnvObject) -> bool:
        """Change nothing."""
        return True


TaskModifier = TaskObject | TaskDisable | TaskValue


def notes(modifiers: list[TaskModifier]) -> dict[str, Value]:
    """Return the notes of a task; of several with one key the first counts."""
    out: dict[str, Value] = {}
    for modifier in modifiers:
        if isinstance(modifier, TaskValue):
            out.setdefault(modifier.key, modifier.value)
    return out


def placed(instance: EnvObject, room: str, *, force: bool = False) -> TaskObject:
    """Return that a room needs a thing, which counts as there by its own name."""
    return TaskObject(instance.name, instance, room, force=force)


def material_of(instance: EnvObject) -> MaterialProperties:
    """Return the material of a thing that is made of something."""
    assert instance.prop_material is not None, instance
    return instance.prop_material
