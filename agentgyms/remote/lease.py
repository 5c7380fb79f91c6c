"""A session on a server, seen from its client."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from agentgyms.core import serialization, snapshots
from agentgyms.core.errors import BadRequest, SessionLost
from agentgyms.core.images import Image
from agentgyms.core.tasks import Task
from agentgyms.remote.endpoint import Endpoint, UnreadableReply
from agentgyms.remote.protocol import framing, messages


class Step(NamedTuple):
    """The result of `Env.step`."""

    observation: Any
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]

    @property
    def state(self) -> snapshots.Last:
        """The state that the step led to."""
        return snapshots.Last(self.observation, self.info, self.terminated, self.truncated)


class Listed(NamedTuple):
    """Some tasks of a split; the split has `total` tasks."""

    split: str
    tasks: list[Task]
    total: int


@dataclass(slots=True)
class Lease:
    """One session of a server, by its id there and the server's number of the running episode.

    A call has two halves: `reset_fields` and `step_fields` return the fields of a request,
    `take_state` and `take_step` read the reply. So calls of many sessions can be sent in one batch.
    """

    endpoint: Endpoint
    session_id: str
    episode: int
    description: messages.Description

    @classmethod
    def open(cls, endpoint: Endpoint, kwargs: dict[str, Any]) -> Self:
        """Open a session."""
        return cls.take(endpoint, endpoint.call("POST", "/v1/sessions", cls.create_fields(kwargs)))

    @staticmethod
    def create_fields(kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return a request for a new session; sent twice, it opens one session only."""
        return {"kwargs": kwargs, "request_id": secrets.token_hex(16)}

    @classmethod
    def take(cls, endpoint: Endpoint, value: Any) -> Self:
        """Return the session that a server opened; else close it and raise `UnreadableReply`."""
        try:
            opened = endpoint.read(messages.Opened, value)
            description = endpoint.read(messages.Description, opened.environment)
            with endpoint.reading():
                framing.read_space(description.observation_space)
                framing.read_space(description.action_space)
        except UnreadableReply:
            named = value.get("session_id") if isinstance(value, dict) else None
            if isinstance(named, str):
                endpoint.dismiss(f"/v1/sessions/{named}")
            raise
        return cls(endpoint, opened.session_id, opened.episode, description)

    def reset(self, episode: snapshots.Episode) -> snapshots.Last:
        """Start `episode` from its seed and return its first state."""
        return self.take_state(self._post("reset", self.reset_fields(episode)))

    def reset_fields(self, episode: snapshots.Episode) -> dict[str, Any]:
        """Return the fields of the request that starts `episode`."""
        return {"seed": episode.seed, "options": episode.options, "episode": self.episode}

    def step(self, action: str, turn: int) -> Step:
        """Take a turn."""
        return self.take_step(self._post("step", self.step_fields(action, turn)), turn)

    def step_fields(self, action: str, turn: int) -> dict[str, Any]:
        """Return the fields of the request that takes a turn."""
        return {"action": action, "turn": turn, "episode": self.episode}

    def take_state(self, value: Any) -> snapshots.Last:
        """Return the state in a reply; `SessionLost` if it answers another request."""
        state = self.endpoint.read(messages.State, value)
        with self.endpoint.reading():
            observation = serialization.decode_observation(state.observation)
            info = serialization.decode_info(state.info)
        self._expect("episode", self.episode + 1, state.episode)
        self.episode = state.episode
        return snapshots.Last(observation, info, state.terminated, state.truncated)

    def take_step(self, value: Any, turn: int) -> Step:
        """Return the step in a reply; `SessionLost` if it answers another request."""
        with self.endpoint.reading():
            taken = framing.read_reply(messages.Turn, value, "reply")
            observation = serialization.decode_observation(taken.observation)
            reward = serialization.decode_number(taken.reward)
            info = serialization.decode_info(taken.info)
        self._expect("turn", turn, taken.turn)
        return Step(observation, reward, taken.terminated, taken.truncated, info)

    def snapshot(self) -> bytes:
        """Return the environment's snapshot."""
        reply = self.endpoint.read(messages.Snapshot, self._post("snapshot", {}))
        with self.endpoint.reading():
            try:
                return reply.snapshot.encode()
            except UnicodeEncodeError as e:
                raise BadRequest(f"snapshot has half of a character: {e}") from None

    def restore(self, snapshot: bytes) -> snapshots.Last:
        """Return to a snapshot."""
        text = snapshots.as_text(snapshot)
        fields = {"snapshot": text, "episode": self.episode}
        return self.take_state(self._post("restore", fields))

    def fork(self) -> Lease:
        """Open another session in the same state."""
        reply = self._post("fork", {"request_id": secrets.token_hex(16)})
        return Lease.take(self.endpoint, reply)

    def render(self) -> str | Image | None:
        """Return what the environment renders."""
        reply = self.endpoint.call("GET", f"{self._path}/render")
        rendered = self.endpoint.read(messages.Rendered, reply).render
        if rendered is None:
            return None
        with self.endpoint.reading():
            return serialization.decode_part(rendered, "render")

    def tasks(self, offset: int = 0, limit: int | None = None) -> Listed:
        """Return tasks of the split from `offset` on: at most `limit`, or all in one reply."""
        query = f"?offset={offset}" + ("" if limit is None else f"&limit={limit}")
        reply = self.endpoint.call("GET", f"{self._path}/tasks{query}")
        message = self.endpoint.read(messages.Tasks, reply)
        with self.endpoint.reading():
            return Listed(message.split, framing.read_tasks(message), message.total)

    def dismiss(self) -> None:
        """Close the session; if the server does not reply, the session expires there."""
        self.endpoint.dismiss(self._path)

    def _expect(self, what: str, expected: int, given: int) -> None:
        if given != expected:
            raise SessionLost(
                f"{self.endpoint.url} answered with {what} {given} where {what} {expected} was "
                "asked for: something between delivered the reply to another request"
            )

    @property
    def _path(self) -> str:
        return f"/v1/sessions/{self.session_id}"

    def _post(self, operation: str, fields: dict[str, Any]) -> Any:
        return self.endpoint.call("POST", f"{self._path}/{operation}", fields)


def dismiss_all(leases: Sequence[Lease]) -> None:
    """Close sessions, one call per server; if it does not reply, they expire there."""
    groups: dict[Endpoint, list[str]] = {}
    for lease in leases:
        groups.setdefault(lease.endpoint, []).append(lease.session_id)
    for endpoint, session_ids in groups.items():
        endpoint.dismiss_all(session_ids)
