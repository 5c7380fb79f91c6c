"""One client's environment: the order of turns, stored replies, and the operations of routes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gymnasium.error import ResetNeeded

from agentgyms.core import serialization, snapshots
from agentgyms.core.deadlines import given_up_when
from agentgyms.core.env import TextEnv
from agentgyms.core.errors import BadOption, BadRequest, ReplayMismatch
from agentgyms.core.images import is_image
from agentgyms.core.tasks import TaskSet
from agentgyms.recording import recorder
from agentgyms.remote.protocol import framing, messages
from env_servers.observability.metrics import Metrics
from env_servers.sessions import requester
from env_servers.sessions.errors import Refusal


class Session:
    """An environment, and its client's position in the episode.

    Callers of the methods hold `lock`; `Sessions.use` takes it. `episode` counts the episodes begun
    here, `turn` the turns of this one (None before the first reset). `touched` is the time of the
    last use by the server's clock. It is `unclaimed` if its client left before it got the id; a
    thread that waited for the lock checks `is_closed`.
    """

    def __init__(
        self, session_id: str, env: TextEnv, request_id: str, metrics: Metrics, now: float
    ) -> None:
        self.session_id, self.request_id = session_id, request_id
        self.env = env
        self.lock = threading.Lock()
        self.episode = 0
        self.turn: int | None = None
        self.touched = now
        self.is_closed = self.unclaimed = False
        self._waiting: list[None] = []  # one for each request that waits for the lock
        self._metrics = metrics
        self._ends = (False, False)
        self._reply: messages.Turn | None = None
        self._first_reply: tuple[messages.Reset | messages.Restore, messages.State] | None = None

    @property
    def finished(self) -> bool:
        """Whether the episode has ended, so that nothing is lost with the session."""
        return any(self._ends)

    def reset(self, request: messages.Reset) -> messages.State:
        """Begin an episode or return its stored reply; `Refusal` if another one has begun since."""
        if request.seed is not None and request.seed < 0:
            raise BadRequest(f"'seed' must not be negative, got {request.seed}")
        stored = self._stored_reply(request)
        if stored is not None:
            return stored
        try:
            with given_up_when(self._in_vain):
                observation, info = self.env.reset(seed=request.seed, options=request.options)
        except Exception:
            self._clear_if_lost()
            raise
        self._start_episode(0)
        self._metrics.episodes.labels("begun").inc()
        return self._store(request, messages.State(observation, info, 0, self.episode))

    def step(self, request: messages.Step) -> messages.Turn:
        """Take a turn, or return the stored reply of the turn taken last.

        Raises `Refusal` unless the turn is the next one or the last, of this episode, and
        `ResetNeeded` if no episode has begun or it is over.
        """
        if request.episode is not None and request.episode != self.episode:
            raise Refusal(
                "turn_conflict",
                f"turn {request.turn} is of episode {request.episode}, but the session is in its "
                f"episode {self.episode}",
            )
        if self._reply is not None and request.turn == self.turn:
            return self._reply
        if self.turn is not None and request.turn != self.turn + 1:
            raise Refusal(
                "turn_conflict",
                f"turn {request.turn} was sent, but the session has taken {self.turn} turns: "
                f"expected turn {self.turn + 1}",
            )
        observation, reward, terminated, truncated, info = self.env.step(request.action)
        self.turn, self._ends = info["turn"], (terminated, truncated)
        self._reply = messages.Turn(
            observation, reward, terminated, truncated, info, turn=info["turn"]
        )
        self._first_reply = None
        self._metrics.turns.inc()
        if terminated or truncated:
            self._metrics.episodes.labels("terminated" if terminated else "truncated").inc()
        return self._reply

    @property
    def latest(self) -> messages.State | messages.Turn:
        """The latest reply, of a step, a reset or a restore; `ResetNeeded` if there is none."""
        if self._reply is not None:
            return self._reply
        if self._first_reply is None:
            raise ResetNeeded("there is no episode yet: call reset first")
        return self._first_reply[1]

    def snapshot(self) -> messages.Snapshot:
        """Return the environment's snapshot."""
        return messages.Snapshot(self.env.snapshot().decode("ascii"))

    def restore(self, request: messages.Restore) -> messages.State:
        """Return to a snapshot. The episode before ends, also if the restoring fails.

        Raises `Refusal` if another episode has begun since the request was sent.
        """
        stored = self._stored_reply(request)
        if stored is not None:
            return stored
        given = request.snapshot.encode("utf-8", "surrogatepass")
        try:
            with given_up_when(self._in_vain):
                observation, info = self.env.restore(given)
        except Exception:
            self._clear_if_lost()
            raise
        last = snapshots.unpack(given, None).episode.last
        self._start_episode(info["turn"], (last.terminated, last.truncated))
        state = messages.State(observation, info, info["turn"], self.episode, *self._ends)
        return self._store(request, state)

    def take_over(self, parent: Session) -> None:
        """Take the turn and the end of `parent`, whose environment was forked into this one."""
        self._start_episode(parent.turn, parent._ends)

    def render(self) -> messages.Rendered:
        """Return what the environment renders; `BadOption` if that has no wire form."""
        shown: Any = self.env.render()
        if shown is not None and not isinstance(shown, str) and not is_image(shown):
            raise BadOption(
                f"render_mode {self.env.render_mode!r} gives {type(shown).__name__}, which has no "
                "wire form: make the environment with render_mode 'ansi' or 'rgb_array'"
            )
        return messages.Rendered(shown)

    def tasks(self, split: str | None) -> TaskSet:
        """Return the tasks of the environment's split; `BadRequest` for another one."""
        if split not in (None, self.env.split):
            raise BadRequest(
                f"the session is of split {self.env.split!r}, not {split!r:.80}: leave 'split' "
                "out, or ask for /v1/tasks"
            )
        return self.env.tasks

    def recording(self, env_id: str, actor: str = "") -> str:
        """Return the episode as a recording, made by replaying it; `actor`, if any, is who acted.

        Raises `ResetNeeded` if no episode has begun, `ReplayMismatch` if the replay went elsewhere.
        """
        episode = snapshots.unpack(self.env.snapshot(), None).episode
        twin = self.env.fork()
        try:
            lines = _replay(env_id, twin, episode, {"actor": actor} if actor else {})
        finally:
            twin.close()
        return "".join(f"{line}\n" for line in lines)

    def state(self, ttl_s: float) -> messages.SessionState:
        """Return where the session stands."""
        return messages.SessionState(
            session_id=self.session_id,
            turn=self.turn,
            episode=self.episode,
            terminated=self._ends[0],
            truncated=self._ends[1],
            ttl_s=ttl_s,
            environment=framing.describe(self.env),
        )

    def _stored_reply(self, request: messages.Reset | messages.Restore) -> messages.State | None:
        """Return the reply to the request that began this episode if `request` is that request."""
        if request.episode is None or request.episode == self.episode:
            return None
        if self._first_reply is not None and self._first_reply[0] == request:
            return self._first_reply[1]
        raise Refusal(
            "turn_conflict",
            f"the request is to follow episode {request.episode}, but the session is in its "
            f"episode {self.episode}",
        )

    def _store(
        self, request: messages.Reset | messages.Restore, state: messages.State
    ) -> messages.State:
        self._first_reply = request, state
        return state

    def _start_episode(self, turn: int | None, ends: tuple[bool, bool] = (False, False)) -> None:
        self.turn, self._ends, self._reply, self._first_reply = turn, ends, None, None
        self.episode += 1

    @contextmanager
    def awaited(self) -> Iterator[None]:
        """Count one who waits for the lock, so that the work of its holder is not given up."""
        self._waiting.append(None)
        try:
            yield
        finally:
            self._waiting.pop()

    def _in_vain(self) -> bool:
        """Return whether nobody waits for the reply any more, nor for the session."""
        return not self._waiting and requester.is_gone()

    def _clear_if_lost(self) -> None:
        try:
            self.env.episode_source  # noqa: B018 (read for the exception it raises)
        except ResetNeeded:
            self.turn, self._ends, self._reply, self._first_reply = None, (False, False), None, None


def _replay(
    env_id: str, env: TextEnv, episode: snapshots.Episode, provenance: dict[str, str]
) -> list[str]:
    header = recorder.make_header(env_id, env, episode.seed, episode.options, **provenance)
    kwargs = header["kwargs"]
    header["kwargs"] = {k: v for k, v in kwargs.items() if not env.is_private(k, v)}
    observation, info = env.reset(seed=episode.seed, options=episode.options)
    turns = [recorder.RecordedTurn(0, "", observation, 0.0, False, False, info)]
    for action in episode.actions:
        observation, reward, terminated, truncated, info = env.step(action)
        turns.append(
            recorder.RecordedTurn(
                info["turn"], action, observation, reward, terminated, truncated, info
            )
        )
    if info["state_key"] != episode.last.info["state_key"]:
        raise ReplayMismatch("the episode cannot be played again: it reached another state")
    return [serialization.dumps(header), *map(recorder.turn_line, turns)]
