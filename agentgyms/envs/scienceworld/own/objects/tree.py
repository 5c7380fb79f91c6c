"""The tree that objects of the game form: what is in what, and what one sees from where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from agentgyms.envs.scienceworld.own.sets import ObjectSet, distinct, settled, union

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.properties.container import ContainerProperties

T = TypeVar("T", bound="TreeNode[Any]")
"""The type of all objects, which is `EnvObject`."""


class TreeNode(Generic[T]):
    """An object's place in the tree; `EnvObject` adds all that an object is.

    Methods that return several objects return a tuple in the order of the engine's set.
    """

    prop_container: ContainerProperties | None = None
    _contained: ObjectSet[T] | None = None
    _container: T | None = None
    _portals: ObjectSet[T] | None = None
    _ticking: tuple[T, ...] | None = None

    def is_hidden(self) -> bool:
        """Tell whether the object is left out of what one sees."""
        raise NotImplementedError

    def add_portal(self, portal_in: T) -> None:
        """Add a way out of this place."""
        if self._portals is None:
            self._portals = ObjectSet()
        self._portals.add(portal_in)

    def remove_portal(self, portal_in: T) -> bool:
        """Remove a way out; tell whether there was one."""
        return self._portals is not None and self._portals.remove(portal_in)

    def portals(self, include_hidden: bool = True) -> tuple[T, ...]:
        """Return the ways out of this place."""
        if self._portals is None:
            return ()
        found = self._portals.items()
        if include_hidden:
            return found
        return tuple(settled([portal for portal in found if not portal.is_hidden()]))

    def contained_objects_and_portals(self, include_hidden: bool = True) -> tuple[T, ...]:
        """Return what is in this object, and the ways out of it."""
        if not include_hidden:
            return union(self.contained_objects_not_hidden(), self.portals())
        return tuple(_joined(self.contained_objects(), self.portals()))

    def contained_objects_and_portals_recursive(
        self, include_hidden: bool = False, include_portal_connections: bool = False
    ) -> tuple[T, ...]:
        """Return what is in this object at any depth, and the ways out, and where they lead."""
        inside, portals = self.contained_objects(), self.portals()
        ends: tuple[T, ...] = ()
        out = [obj for obj in inside if include_hidden or not obj.is_hidden()]
        for portal in portals:
            if include_hidden or not portal.is_hidden():
                out.append(portal)
                if include_portal_connections:
                    ends = union(ends, portal.connection_points())
        out = settled(distinct(out))
        for obj in inside:
            if include_hidden or not obj.is_hidden():
                more = obj.contained_objects_and_portals_recursive(
                    include_hidden, include_portal_connections
                )
                out = _joined(out, more)
        return tuple(_joined(out, ends))

    def container(self) -> T | None:
        """Return the object that this one is in."""
        return self._container

    def contained_objects(self, include_hidden: bool = True) -> tuple[T, ...]:
        """Return what is in this object."""
        if self._contained is None:
            return ()
        if include_hidden:
            return self._contained.items()
        return self.contained_objects_not_hidden()

    def contained_objects_not_hidden(self) -> tuple[T, ...]:
        """Return what is in this object and visible."""
        if self._contained is None:
            return ()
        return tuple(settled([obj for obj in self._contained.items() if not obj.is_hidden()]))

    def contained_objects_recursive(self) -> tuple[T, ...]:
        """Return what is in this object at any depth."""
        out = dict.fromkeys(self.contained_objects())
        for obj in self.contained_objects():
            out.update(dict.fromkeys(obj.contained_objects_recursive()))
        return tuple(settled(list(out)))

    def contained_objects_recursive_accessible(self, include_hidden: bool = False) -> tuple[T, ...]:
        """Return what is in this object, and in open containers in it."""
        inside = self.contained_objects(include_hidden)
        out = dict.fromkeys(inside)
        for obj in inside:
            if obj.prop_container is not None and obj.prop_container.is_open:
                more = obj.contained_objects_recursive_accessible(include_hidden)
                out.update(dict.fromkeys(more))
        return tuple(settled(list(out)))

    def contained_accessible_objects(
        self, include_hidden: bool = False, include_portals: bool = True
    ) -> tuple[T, ...]:
        """Return what one can reach in this object, with electrical terminals."""
        out: dict[T, None] = {}
        for obj in self.contained_objects():
            if not include_hidden and obj.is_hidden():
                continue
            out[obj] = None
            for terminal in obj.reachable_terminals(include_hidden):
                out[terminal] = None
            if obj.prop_container is not None and obj.prop_container.is_open:
                more = obj.contained_accessible_objects(include_hidden, include_portals)
                out.update(dict.fromkeys(more))
        if include_portals:
            for portal in self.portals():
                # The engine takes the hidden ones here, not the others.
                if portal.is_hidden() or include_hidden:
                    out[portal] = None
        return tuple(settled(list(out)))

    def reachable_terminals(self, include_hidden: bool) -> tuple[T, ...]:
        """Return the terminals that one reaches when one reaches the object."""
        raise NotImplementedError

    def connection_points(self) -> tuple[T, ...]:
        """Return the two places that a portal connects."""
        raise NotImplementedError

    def contained_objects_of_type(self, *kinds: type) -> tuple[T, ...]:
        """Return what is in this object and of a class."""
        return tuple(settled([obj for obj in self.contained_objects() if isinstance(obj, kinds)]))

    def contained_accessible_objects_of_type(
        self, *kinds: type, include_hidden: bool = False, include_portals: bool = True
    ) -> tuple[T, ...]:
        """Return what one can reach in this object and is of a class."""
        found = self.contained_accessible_objects(include_hidden, include_portals)
        return tuple(settled([obj for obj in found if isinstance(obj, kinds)]))

    def add_object(self, obj_in: T) -> None:
        """Put an object into this one, out of where it was."""
        if obj_in is self:
            return
        obj_in.remove_and_reset_container()
        if self._contained is None:
            self._contained = ObjectSet()
        self._contained.add(obj_in)
        self._ticking = None
        obj_in._container = self

    def remove_object_from_container(self, obj_in: T) -> bool:
        """Take an object out of this one; tell whether it was in it."""
        if self._contained is None or not self._contained.remove(obj_in):
            return False
        self._ticking = None
        obj_in.remove_and_reset_container()
        return True

    def remove_and_reset_container(self) -> None:
        """Take this object out of where it is."""
        container = self._container
        self._container = None
        if container is not None and container._contained is not None:
            container._contained.remove(self)
            container._ticking = None

    def move_all_contained_objects(self, new_container: T) -> None:
        """Put all that is in this object into another."""
        for obj in self.contained_objects():
            new_container.add_object(obj)

    def contains(self, obj_in: T) -> bool:
        """Tell whether an object is in this one, not deeper."""
        return self._contained is not None and obj_in in self._contained

    def container_recursive_of_type(self, *kinds: type) -> T | None:
        """Return the nearest object of a class around this one, as long as all between is open."""
        container = self._container
        if container is None or isinstance(container, kinds):
            return container
        if self.prop_container is not None and self.prop_container.is_open:
            return container.container_recursive_of_type(*kinds)
        return None

    def containers_recursive(self) -> list[T]:
        """Return all objects around this one, the nearest first."""
        return list(_around(self))


def _joined(first: Iterable[T], second: Iterable[T]) -> list[T]:
    """Return the members of a copy of a mutable set that others are added to."""
    return settled(distinct((*first, *second)))


def _around(obj: TreeNode[T]) -> Iterator[T]:
    container = obj.container()
    while container is not None:
        yield container
        container = container.container()
