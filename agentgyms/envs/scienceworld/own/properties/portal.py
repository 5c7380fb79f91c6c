"""The property of ways between places."""

from __future__ import annotations

from typing import Generic, TypeVar

_T = TypeVar("_T")


class PortalProperties(Generic[_T]):
    """Tells which places a way connects, and whether it is open or locked."""

    __slots__ = (
        "connects_from",
        "connects_to",
        "is_lockable",
        "is_locked",
        "is_open",
        "is_openable",
    )

    def __init__(
        self,
        is_open: bool,
        is_openable: bool,
        connects_from: _T,
        connects_to: _T,
        is_lockable: bool,
        is_locked: bool,
    ) -> None:
        self.is_open = is_open
        self.is_openable = is_openable
        self.connects_from = connects_from
        self.connects_to = connects_to
        self.is_lockable = is_lockable
        self.is_locked = is_locked
