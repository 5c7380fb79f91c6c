"""The routes of the servers, as the OpenAPI document describes them."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from agentgyms.remote.protocol import messages
from env_servers.http.openapi.json_schema import Schema, object_of

TEXT: Final[Schema] = {"type": "string"}
SESSION_ID: Final = "Zr0c3xvQW2u5cX1bJt8hKg"
"""The example of a session's id."""

_SESSION: Final = "/v1/sessions/{session_id}"
_CREATE: Final = {"kwargs": {"split": "train", "max_turns": 20}, "request_id": "8d1f7c0e4b9a"}
_STEP: Final = {"action": "right", "turn": 1}
_ON_OPENED: Final = ("getSession", "resetSession", "listSessionTasks", "deleteSession")
_ON_EPISODE: Final = (
    *("stepSession", "snapshotSession", "forkSession"),
    *("renderSession", "getTrajectory", "deleteSession"),
)


class Operation(NamedTuple):
    """One method of one path; `errors` are statuses beside those of every route of its kind."""

    route: str  # method and path
    name: str  # the `operationId`
    summary: str
    description: str
    request: type[Any] | None = None  # the message in the body
    query: type[Any] | None = None  # the message that travels as a query
    reply: type[Any] | Schema | None = None
    media: str = "application/json"  # of the reply
    status: int = 200  # of a good reply
    errors: tuple[int, ...] = ()
    example: Schema | None = None  # of the body
    links: tuple[str, ...] = ()  # operations that may follow on the session

    @property
    def path(self) -> str:
        """The path, with its parameters in braces."""
        return self.route.partition(" ")[2]

    @property
    def is_open(self) -> bool:
        """Whether the route needs no token and does not check the protocol's version."""
        return not self.path.startswith("/v1/")

    @property
    def method(self) -> str:
        """The method, in lower case."""
        return self.route.partition(" ")[0].lower()

    @property
    def on_session(self) -> bool:
        """Whether the path has a session's id."""
        return self.path.startswith(_SESSION)

    @property
    def in_batch(self) -> bool:
        """Whether the body holds many requests, and the reply as many results."""
        return self.path.startswith("/v1/batch/")

    @property
    def tag(self) -> str:
        """The group of operations that it belongs to."""
        _, version, group, *_ = [*self.path.split("/"), ""]
        return group if version == "v1" and group in ("sessions", "batch") else "server"


def _status(word: str) -> Schema:
    return object_of({"status": {"type": "string", "const": word}})


OPERATIONS: Final = (
    Operation(
        *("GET /healthz", "health", "The process answers."),
        "Answers as long as the process does; asks nothing of the environment.",
        reply=_status("ok"),
    ),
    Operation(
        *("GET /readyz", "ready", "An environment can be made and reset."),
        "The first request makes, resets and warms up an environment.",
        reply=_status("ready"),
        errors=(422, 500, 503),
    ),
    Operation(
        *("GET /metrics", "metrics", "Figures for Prometheus.", "In the Prometheus text format."),
        reply=TEXT,
        media="text/plain",
    ),
    Operation(
        *("GET /openapi.json", "describe", "This description.", "The same for all environments."),
        reply={"type": "object", "additionalProperties": True},
    ),
    Operation(
        *("GET /v1/info", "info", "What is served here."),
        "The environment with the server's own arguments, and the limits that clients keep to.",
        reply=messages.Info,
    ),
    Operation(
        *("GET /v1/tasks", "listTasks", "The tasks of a split, with the server's own arguments."),
        f"In the order of their ids, at most {messages.MAX_TASKS} in a reply. Where `next` is an "
        "integer there may be more: ask again with it as `offset`.",
        query=messages.ListTasks,
        reply=messages.Tasks,
    ),
    Operation(
        *("POST /v1/sessions", "createSession", "Open a session."),
        "The environment is made with the server's arguments and `kwargs` over them. Arguments "
        "that name files or addresses are the server's alone.",
        request=messages.Create,
        reply=messages.Opened,
        status=201,
        errors=(409, 410, 429, 504),
        example=_CREATE,
        links=_ON_OPENED,
    ),
    Operation(
        *(f"GET {_SESSION}", "getSession", "Where the session stands."),
        "For a client that lost count of the turns.",
        reply=messages.SessionState,
    ),
    Operation(
        *(f"DELETE {_SESSION}", "deleteSession", "Close the session."),
        "Its environment is closed. A client that is done should do this; a session that is not "
        "used expires.",
        status=204,
    ),
    Operation(
        *(f"POST {_SESSION}/reset", "resetSession", "Begin an episode."),
        "The episode is a function of split, seed and options alone.",
        request=messages.Reset,
        reply=messages.State,
        example={"seed": 7},
        links=_ON_EPISODE,
    ),
    Operation(
        *(f"POST {_SESSION}/step", "stepSession", "Take a turn."),
        "Turns are numbered from 1. The turn taken last, sent again, returns its stored reply; any "
        "other number than the next one is refused with `turn_conflict`. A bad action is no error: "
        "it is answered with an observation, `info.feedback`, and costs a turn.",
        request=messages.Step,
        reply=messages.Turn,
        example=_STEP,
    ),
    Operation(
        *(f"POST {_SESSION}/snapshot", "snapshotSession", "The whole state, as text."),
        "Portable: it can be restored in another session, on another server or in a local "
        "environment, of the same kind.",
        request=messages.Empty,
        reply=messages.Snapshot,
        links=("restoreSession",),
    ),
    Operation(
        *(f"POST {_SESSION}/restore", "restoreSession", "Return to a snapshot."),
        "The snapshot may come from anybody: it is data, checked before it is used, and runs "
        "nothing.",
        request=messages.Restore,
        reply=messages.State,
    ),
    Operation(
        *(f"POST {_SESSION}/fork", "forkSession", "Open another session in the same state."),
        "Both go on from there independently.",
        request=messages.Fork,
        reply=messages.Opened,
        status=201,
        errors=(429,),
        links=_ON_OPENED,
    ),
    Operation(
        *(f"GET {_SESSION}/render", "renderSession", "What the environment renders."),
        "In the `render_mode` that the session was opened with.",
        reply=messages.Rendered,
    ),
    Operation(
        *(f"GET {_SESSION}/tasks", "listSessionTasks", "The tasks of the session's split."),
        "As `/v1/tasks`, with the session's own arguments.",
        query=messages.ListTasks,
        reply=messages.Tasks,
    ),
    Operation(
        *(f"GET {_SESSION}/trajectory", "getTrajectory", "The episode so far as a recording."),
        "JSON lines that `agentgyms replay` verifies, made by playing the episode again in an "
        "environment of its own.",
        query=messages.Trajectory,
        reply=TEXT,
        media="application/jsonl",
    ),
    *(
        Operation(
            *(f"POST /v1/batch/{name}", f"batch{name.capitalize()}", f"{summary} for every item."),
            "Items of one session are done in order, so an episode can be played again in one "
            "request. An item's error does not stop the others.",
            request=request,
            reply=reply,
            example={"items": [{"session_id": SESSION_ID, **_STEP}]} if name == "step" else None,
        )
        for name, summary, request, reply in (
            ("create", "Open a session", messages.Create, messages.Opened),
            ("reset", "Begin an episode", messages.Reset, messages.State),
            ("step", "Take a turn", messages.Step, messages.Turn),
            ("close", "Close a session", messages.Empty, messages.Closed),
        )
    ),
)
