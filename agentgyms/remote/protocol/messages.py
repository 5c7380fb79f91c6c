"""The messages between client and server, one dataclass each, used by both sides.

Every message is one JSON object; `agentgyms.remote.protocol.framing` reads and writes them. What
`Annotated` adds to a type is for the OpenAPI description alone: keywords of JSON Schema, or the
class whose fields an object has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from agentgyms.core.outcome import TurnInfo

MAX_REQUEST_ID: Final = 64
"""Longest `request_id`, in characters."""

MAX_ACTOR: Final = 200
"""Longest `actor`, in characters."""

MAX_FILTER: Final = 256
"""Longest text by which tasks are searched, in characters."""

MAX_TASKS: Final = 10_000
"""Most tasks of one reply."""

MAX_BATCH: Final = 1024
"""Most items of a batch."""

MAX_OFFSET: Final = 10**18 - 1
"""Most tasks of a split."""

_Count = Annotated[int, {"minimum": 0}]
_CountOrNull = Annotated[int | None, {"minimum": 0}]
_Positive = Annotated[int, {"minimum": 1}]
_RequestId = Annotated[str, {"maxLength": MAX_REQUEST_ID}]
_Filter = Annotated[str, {"maxLength": MAX_FILTER}]
_Options = Annotated[dict[str, Any] | None, {"properties": {"task_id": {"type": "string"}}}]
_TaskPair = Annotated[
    list[str],
    {
        "minItems": 2,
        "maxItems": 2,
        "description": "Id and family.",
        "example": ["train/open-001", "open"],
    },
]

# --- requests ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Create:
    """Open a session.

    Attributes:
        kwargs: Keyword arguments of the environment; they override the server's.
        request_id: Chosen by the client; a repeated id returns the same session.
    """

    kwargs: dict[str, Any] = field(default_factory=dict)
    request_id: _RequestId = ""


@dataclass(frozen=True, slots=True)
class Reset:
    """Start an episode; without a seed the environment draws one.

    Attributes:
        seed: Seed of the episode; without one the environment draws it.
        options: Options of the episode.
        episode: The number of the episode that this one follows, as the last reply carried it: the
            same request again returns its stored reply, and a late one is refused. Without it
            nothing is checked.
    """

    seed: _CountOrNull = None
    options: _Options = None
    episode: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """Take a turn.

    Attributes:
        action: Any string.
        turn: Number of this turn, from 1; the last one again returns its stored reply.
        episode: The number that the episode's first reply carried; a step of another episode is
            refused. Without it nothing is checked.
    """

    action: str
    turn: _Positive
    episode: int | None = None


@dataclass(frozen=True, slots=True)
class Restore:
    """Return to a snapshot.

    Attributes:
        snapshot: The snapshot as text.
        episode: The number of the episode that this one follows, as in `Reset`.
    """

    snapshot: str
    episode: int | None = None


@dataclass(frozen=True, slots=True)
class Fork:
    """Open another session in the same state.

    Attributes:
        request_id: Chosen by the client; the same one again returns the same session.
    """

    request_id: _RequestId = ""


@dataclass(frozen=True, slots=True)
class ListTasks:
    """List tasks, in the order of their ids; sent as a query string.

    Attributes:
        split: Name of the split. Default: that of the server, or of the session.
        offset: Index in the split of the first task that is searched; tasks are in the order of
            their ids.
        limit: Most tasks of the reply. Default: 10000, the most that a reply may have.
        prefix: Only tasks whose id begins with it; found by bisection, in any number of tasks.
        contains: Only tasks whose id or family contains it, in any case. One request searches
            50000 tasks at most: go on at `next`, also where nothing was found yet.
    """

    split: str | None = None
    offset: Annotated[_Count, {"maximum": MAX_OFFSET, "default": 0}] = 0
    limit: Annotated[int | None, {"minimum": 1, "maximum": MAX_TASKS}] = None
    prefix: _Filter = ""
    contains: _Filter = ""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """Return the episode so far as a recording; sent as a query string.

    Attributes:
        actor: Who acted, for the provenance of the recording; "" leaves it open.
    """

    actor: Annotated[str, {"maxLength": MAX_ACTOR}] = ""


@dataclass(frozen=True, slots=True)
class Empty:
    """A request without fields."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Several requests in one. Requests of one session are done in order.

    Attributes:
        items: The requests; each also has its `session_id`.
    """

    items: Annotated[list[Any], {"maxItems": MAX_BATCH}]


# --- replies -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Description:
    """The properties of an environment that a client needs to represent it.

    Attributes:
        parties: The others in an episode, by role: a partner, a judge.
        data_source: The source of the tasks; "" if nobody knows.
        stochastic: Whether chance takes part in turns.
        tools: The actions as tools: each with `name`, `description`, `action` and `arguments`.
    """

    split: str
    splits: list[str]
    max_turns: _Positive
    oracle: bool
    render_modes: list[str]
    data_version: str
    data_source: str
    observation_space: Annotated[dict[str, Any], "Space"]
    action_space: Annotated[dict[str, Any], "Space"]
    parties: dict[str, str] = field(default_factory=dict)
    stochastic: bool = False
    tools: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a server.

    Attributes:
        max_sessions: Most sessions at a time.
        ttl_s: Seconds after which an unused session expires.
        max_body_bytes: Longest body of a request.
        max_batch: Most items of a batch.
        max_tasks: Most tasks of a reply.
    """

    max_sessions: _Positive
    ttl_s: float
    max_body_bytes: int
    max_batch: int
    max_tasks: int


@dataclass(frozen=True, slots=True)
class Info:
    """The properties of a server."""

    protocol: str
    agentgyms: str
    env_id: str
    environment: Annotated[dict[str, Any], Description]
    limits: Annotated[dict[str, Any], Limits]


@dataclass(frozen=True, slots=True)
class Opened:
    """A new session.

    Attributes:
        session_id: 128 random bits: the right to use the session.
        ttl_s: Seconds after which the session expires if it is not used.
        episode: Number of the episode: 0, unless the session was forked from one with an episode.
        environment: The environment with the session's arguments.
    """

    session_id: str
    ttl_s: float
    episode: _Count
    environment: Annotated[dict[str, Any], Description]


@dataclass(frozen=True, slots=True)
class State:
    """The state after `reset` or `restore`.

    Attributes:
        observation: The text or image, or both, that the agent sees.
        info: Describes the state in which the agent acts next.
        turn: Turns taken so far.
        episode: Number of the episode; it goes into the steps that follow.
        terminated: The task ended.
        truncated: The turn limit was reached, or the engine was lost.
    """

    observation: Annotated[Any, "Observation"]
    info: Annotated[dict[str, Any], TurnInfo]
    turn: _Count
    episode: _Positive
    terminated: bool = False
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """The state after `step`.

    Attributes:
        observation: The text or image, or both, that the agent sees.
        reward: The benchmark's own reward; null where no judge could rate.
        terminated: The task ended.
        truncated: The turn limit was reached, or the engine was lost.
        info: Describes the state in which the agent acts next.
        turn: Turns taken so far, this one included.
    """

    observation: Annotated[Any, "Observation"]
    reward: float | None
    terminated: bool
    truncated: bool
    info: Annotated[dict[str, Any], TurnInfo]
    turn: _Positive


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot as text."""

    snapshot: str


@dataclass(frozen=True, slots=True)
class Rendered:
    """The result of `render`.

    Attributes:
        render: A text in mode ansi, an image in mode rgb_array, null without a mode.
    """

    render: Annotated[Any, "Render"]


@dataclass(frozen=True, slots=True)
class Tasks:
    """Tasks of a split, in order.

    Attributes:
        split: The split.
        tasks: Pairs of id and family.
        total: How many tasks the split has, also where the request filters them.
        next: The `offset` of the request for the tasks that follow; null at the end.
    """

    split: str
    tasks: Annotated[list[_TaskPair], {"maxItems": MAX_TASKS}]
    total: Annotated[_Count, {"maximum": MAX_OFFSET}] = 0
    next: Annotated[int | None, {"minimum": 1}] = None


@dataclass(frozen=True, slots=True)
class SessionState:
    """The state of a session.

    Attributes:
        session_id: The session.
        turn: Turns taken so far; null before the first reset.
        episode: Number of the episode, 0 before the first reset.
        terminated: The task ended.
        truncated: The turn limit was reached, or the engine was lost.
        ttl_s: Seconds after which the session expires if it is not used.
        environment: The environment with the session's arguments.
    """

    session_id: str
    turn: _CountOrNull
    episode: _Count
    terminated: bool
    truncated: bool
    ttl_s: float
    environment: Annotated[dict[str, Any], Description]


@dataclass(frozen=True, slots=True)
class Closed:
    """A session of a batch that is closed now.

    Attributes:
        closed: Always true.
    """

    session_id: str
    closed: bool
