"""The properties of objects that hold others."""

from __future__ import annotations


class ContainerProperties:
    """Tells whether an object holds others, and whether it is open."""

    __slots__ = ("is_closable", "is_container", "is_open")

    def __init__(
        self, is_container: bool = True, is_open: bool = False, is_closable: bool = False
    ) -> None:
        self.is_container = is_container
        self.is_open = is_open
        self.is_closable = is_closable


def IsContainer() -> ContainerProperties:  # noqa: N802
    """Return the properties of a closed container that can be opened."""
    return ContainerProperties(is_container=True, is_open=False, is_closable=True)


def IsNotContainer() -> ContainerProperties:  # noqa: N802
    """Return the properties of a thing that holds nothing."""
    return ContainerProperties(is_container=False, is_open=False, is_closable=False)


def IsOpenUnclosableContainer() -> ContainerProperties:  # noqa: N802
    """Return the properties of a container that is always open."""
    return ContainerProperties(is_container=True, is_open=True, is_closable=False)
