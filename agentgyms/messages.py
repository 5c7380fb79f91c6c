"""The messages between client and server, one dataclass each, used by both sides.

Every message is one JSON object; `agentgyms.protocol` reads and writes them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# --- requests ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Create:
    """Open a session.

    Attributes:
        kwargs: Keyword arguments of the environment, over the server's own.
        request_id: Chosen by the client; the same one again returns the same session.
    """

    kwargs: dict[str, Any] = field(default_factory=dict)
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class Reset:
    """Begin an episode; without a seed the environment draws one.

    Attributes:
        seed: Of the episode.
        options: Of the episode.
        episode: The number of the episode that this one follows, as the last reply carried it: the
            same request again returns its stored reply, and a late one is refused. None is not
            checked.
    """

    seed: int | None = None
    options: dict[str, Any] | None = None
    episode: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """Take a turn.

    Attributes:
        action: Any string.
        turn: Number of this turn, from 1; the last one again returns its stored reply.
        episode: The number that the episode's first reply carried; None is not checked.
    """

    action: str
    turn: int
    episode: int | None = None


@dataclass(frozen=True, slots=True)
class Restore:
    """Return to a snapshot, given as text; `episode` as in `Reset`."""

    snapshot: str
    episode: int | None = None


@dataclass(frozen=True, slots=True)
class Fork:
    """Open another session in the same state; `request_id` as in `Create`."""

    request_id: str = ""


@dataclass(frozen=True, slots=True)
class ListTasks:
    """List tasks, in the order of their ids; it travels as a query.

    Attributes:
        split: Of which split; None takes the server's own.
        offset: Index in the split of the first task that is looked at.
        limit: How many tasks at most; None takes as many as a reply may have.
        prefix: Only tasks whose id begins with it.
        contains: Only tasks whose id or family contains it, in any case.
    """

    split: str | None = None
    offset: int = 0
    limit: int | None = None
    prefix: str = ""
    contains: str = ""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """Give the episode so far as a recording; it travels as a query.

    Attributes:
        actor: Who acted, which the recording's provenance then tells; "" leaves that open.
    """

    actor: str = ""


@dataclass(frozen=True, slots=True)
class Empty:
    """Nothing to say."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Several requests in one, of which those of one session are done in order.

    Each item also names its `session_id`.
    """

    items: list[Any]


# --- replies -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Description:
    """What a client must know of an environment to stand for it."""

    split: str
    splits: list[Any]
    max_turns: int
    oracle: bool
    render_modes: list[Any]
    data_version: str
    observation_space: dict[str, Any]
    action_space: dict[str, Any]
    parties: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Info:
    """What a server is."""

    protocol: str
    agentgyms: str
    env_id: str
    environment: dict[str, Any]
    limits: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Opened:
    """A new session; `episode` is 0 unless it was forked from one with an episode."""

    session_id: str
    ttl_s: float
    episode: int
    environment: dict[str, Any]


@dataclass(frozen=True, slots=True)
class State:
    """The state after `reset` or `restore`; `episode` goes into the steps that follow."""

    observation: Any
    info: dict[str, Any]
    turn: int
    episode: int
    terminated: bool = False
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """The state after `step`."""

    observation: Any
    reward: float | None
    terminated: bool
    truncated: bool
    info: dict[str, Any]
    turn: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot as text."""

    snapshot: str


@dataclass(frozen=True, slots=True)
class Rendered:
    """What `render` returned: a text, an image or None."""

    render: Any


@dataclass(frozen=True, slots=True)
class Tasks:
    """Tasks of a split, in order, as pairs of id and family.

    Attributes:
        split: The split.
        tasks: The pairs.
        total: How many tasks the split has, whatever was asked for.
        next: The `offset` of a request for what follows; None where nothing can.
    """

    split: str
    tasks: list[Any]
    total: int = 0
    next: int | None = None


@dataclass(frozen=True, slots=True)
class SessionState:
    """Where a session stands; `turn` is None before its first reset."""

    session_id: str
    turn: int | None
    episode: int
    terminated: bool
    truncated: bool
    ttl_s: float
    environment: dict[str, Any]
