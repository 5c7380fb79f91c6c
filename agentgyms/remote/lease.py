"""A session on a server, as its client sees it."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from agentgyms import messages, protocol, snapshots, wire
from agentgyms.images import Image
from agentgyms.remote.endpoint import Endpoint, UnreadableReply


class Step(NamedTuple):
    """What `Env.step` returns."""

    observation: Any
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


@dataclass(slots=True)
class Lease:
    """One session.

    `reset_fields`, `step_fields` and their `take_...` are the two halves of a call, so that calls
    of many sessions can travel in one batch.

    Attributes:
        endpoint: Where the session is.
        session_id: Its name there.
        episode: The number that the server gave to the running episode.
        description: The environment behind it.
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
        """Return a request for a new session; sent twice, it opens one."""
        return {"kwargs": kwargs, "request_id": secrets.token_hex(16)}

    @classmethod
    def take(cls, endpoint: Endpoint, value: Any) -> Self:
        """Return the session that a server has opened.

        Raises:
            UnreadableReply: The reply cannot be read; a session that it names is closed.
        """
        try:
            opened = endpoint.read(messages.Opened, value)
            description = endpoint.read(messages.Description, opened.environment)
            with endpoint.reading():
                protocol.read_space(description.observation_space)
                protocol.read_space(description.action_space)
        except UnreadableReply:
            named = value.get("session_id") if isinstance(value, dict) else None
            if isinstance(named, str):
                endpoint.dismiss(_path(named))
            raise
        return cls(endpoint, opened.session_id, opened.episode, description)

    def reset(self, episode: snapshots.Episode) -> snapshots.Last:
        """Begin `episode` anew and return its first state."""
        return self.take_state(self._post("reset", self.reset_fields(episode)))

    def reset_fields(self, episode: snapshots.Episode) -> dict[str, Any]:
        """Return the request that begins `episode`."""
        return {"seed": episode.seed, "options": episode.options}

    def step(self, action: str, turn: int) -> Step:
        """Take a turn."""
        return self.take_step(self._post("step", self.step_fields(action, turn)))

    def step_fields(self, action: str, turn: int) -> dict[str, Any]:
        """Return the request that takes a turn."""
        return {"action": action, "turn": turn, "episode": self.episode}

    def take_state(self, value: Any) -> snapshots.Last:
        """Return the state that a reply to `reset` or `restore` holds."""
        state = self.endpoint.read(messages.State, value)
        with self.endpoint.reading():
            observation = wire.decode_observation(state.observation)
            info = wire.decode_info(state.info)
        self.episode = state.episode
        return snapshots.Last(observation, info, state.terminated, state.truncated)

    def take_step(self, value: Any) -> Step:
        """Return what a reply to `step` holds."""
        turn = self.endpoint.read(messages.Turn, value)
        with self.endpoint.reading():
            observation = wire.decode_observation(turn.observation)
            reward, info = wire.decode_number(turn.reward), wire.decode_info(turn.info)
        return Step(observation, reward, turn.terminated, turn.truncated, info)

    def snapshot(self) -> bytes:
        """Return the environment's snapshot."""
        reply = self.endpoint.read(messages.Snapshot, self._post("snapshot", {}))
        return reply.snapshot.encode()

    def restore(self, snapshot: bytes) -> snapshots.Last:
        """Return to a snapshot."""
        text = snapshots.as_text(snapshot)
        return self.take_state(self._post("restore", {"snapshot": text}))

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
            return wire.decode_part(rendered, "render")

    def tasks(self) -> messages.Tasks:
        """Return the tasks of the environment's split."""
        return self.endpoint.read(messages.Tasks, self.endpoint.call("GET", f"{self._path}/tasks"))

    def dismiss(self) -> None:
        """Close the session; a server that does not answer lets it expire."""
        self.endpoint.dismiss(self._path)

    @property
    def _path(self) -> str:
        return _path(self.session_id)

    def _post(self, operation: str, fields: dict[str, Any]) -> Any:
        return self.endpoint.call("POST", f"{self._path}/{operation}", fields)


def _path(session_id: str) -> str:
    return f"/v1/sessions/{session_id}"
