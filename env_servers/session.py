"""One client's environment: the turn law, stored replies, and what the routes do with it."""

from __future__ import annotations

import threading
from typing import Any

from gymnasium.error import ResetNeeded

from agentgyms import messages, protocol, recording, snapshots, wire
from agentgyms.core import TextEnv
from agentgyms.errors import BadOption, BadRequest, ReplayMismatch
from agentgyms.images import is_image
from agentgyms.tasks import TaskSet
from env_servers.errors import Refusal
from env_servers.metrics import Metrics


class Session:
    """An environment with the place where its client stands.

    Every method is called with `lock` held; `Sessions.use` sees to that.

    Attributes:
        session_id: Unguessable name.
        env: The environment.
        episode: How many episodes have begun here; a step of another one is refused.
        turn: Turns taken in this episode; None before the first reset.
        finished: The episode has ended.
        touched: When the session was last used, in seconds of the server's clock.
        gone: The session was closed while somebody waited for its lock.
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
        self.gone = False
        self._metrics = metrics
        self._ends = (False, False)
        self._reply: messages.Turn | None = None
        self._begun: tuple[messages.Reset | messages.Restore, messages.State] | None = None

    @property
    def finished(self) -> bool:
        """Whether the episode has ended, so that nothing is lost with the session."""
        return any(self._ends)

    def reset(self, asked: messages.Reset) -> messages.State:
        """Begin an episode, or return the stored reply of the one that this request began.

        Raises:
            Refusal: The request is a late one: another episode has begun since.
        """
        if asked.seed is not None and asked.seed < 0:
            raise BadRequest(f"'seed' must not be negative, got {asked.seed}")
        stored = self._stored(asked)
        if stored is not None:
            return stored
        try:
            observation, info = self.env.reset(seed=asked.seed, options=asked.options)
        except Exception:
            self._leave_if_lost()
            raise
        self._place(0)
        self._metrics.episodes.labels("begun").inc()
        return self._keep(asked, messages.State(observation, info, 0, self.episode))

    def step(self, asked: messages.Step) -> messages.Turn:
        """Take a turn, or return the stored reply of the turn taken last.

        Raises:
            Refusal: The turn is neither the next one nor the last, or of another episode.
            ResetNeeded: No episode has begun or it is over.
        """
        if asked.episode is not None and asked.episode != self.episode:
            raise Refusal(
                "turn_conflict",
                f"turn {asked.turn} is of episode {asked.episode}, but the session is in its "
                f"episode {self.episode}",
            )
        if self._reply is not None and asked.turn == self.turn:
            return self._reply
        if self.turn is not None and asked.turn != self.turn + 1:
            raise Refusal(
                "turn_conflict",
                f"turn {asked.turn} was sent, but the session has taken {self.turn} turns: "
                f"expected turn {self.turn + 1}",
            )
        observation, reward, terminated, truncated, info = self.env.step(asked.action)
        self.turn, self._ends = info["turn"], (terminated, truncated)
        self._reply = messages.Turn(
            observation, reward, terminated, truncated, info, turn=info["turn"]
        )
        self._begun = None
        self._metrics.turns.inc()
        if terminated or truncated:
            self._metrics.episodes.labels("terminated" if terminated else "truncated").inc()
        return self._reply

    def snapshot(self) -> messages.Snapshot:
        """Return the environment's snapshot."""
        return messages.Snapshot(self.env.snapshot().decode("ascii"))

    def restore(self, asked: messages.Restore) -> messages.State:
        """Return to a snapshot; an episode that it replaces is over, also if this fails midway.

        Raises:
            Refusal: As for `reset`.
        """
        stored = self._stored(asked)
        if stored is not None:
            return stored
        given = asked.snapshot.encode("utf-8", "surrogatepass")
        try:
            observation, info = self.env.restore(given)
        except Exception:
            self._leave_if_lost()
            raise
        last = snapshots.unpack(given, None).episode.last
        self._place(info["turn"], (last.terminated, last.truncated))
        state = messages.State(observation, info, info["turn"], self.episode, *self._ends)
        return self._keep(asked, state)

    def take_over(self, parent: Session) -> None:
        """Stand where `parent` stands, whose environment this one's was forked from."""
        self._place(parent.turn, parent._ends)

    def render(self) -> messages.Rendered:
        """Return what the environment renders.

        Raises:
            BadOption: It renders something that has no wire form.
        """
        shown: Any = self.env.render()
        if shown is not None and not isinstance(shown, str) and not is_image(shown):
            raise BadOption(
                f"render_mode {self.env.render_mode!r} gives {type(shown).__name__}, which has no "
                "wire form: make the environment with render_mode 'ansi' or 'rgb_array'"
            )
        return messages.Rendered(shown)

    def tasks(self, split: str | None) -> TaskSet:
        """Return the tasks of the environment's split.

        Raises:
            BadRequest: Another split is asked for.
        """
        if split not in (None, self.env.split):
            raise BadRequest(
                f"the session is of split {self.env.split!r}, not {split!r:.80}: leave 'split' "
                "out, or ask for /v1/tasks"
            )
        return self.env.tasks

    def recording(self, env_id: str, actor: str = "") -> str:
        """Return the episode so far as a recording, made by playing it again.

        Args:
            env_id: The environment's id.
            actor: Who acted, for readers; "" leaves that open.

        Raises:
            ResetNeeded: No episode has begun.
            ReplayMismatch: Playing it again led elsewhere.
        """
        episode = snapshots.unpack(self.env.snapshot(), None).episode
        twin = self.env.fork()
        try:
            lines = _play_again(env_id, twin, episode, {"actor": actor} if actor else {})
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
            environment=protocol.describe(self.env),
        )

    def _stored(self, asked: messages.Reset | messages.Restore) -> messages.State | None:
        """Return the reply to the request that began this episode if `asked` is that request."""
        if asked.episode is None or asked.episode == self.episode:
            return None
        if self._begun is not None and self._begun[0] == asked:
            return self._begun[1]
        raise Refusal(
            "turn_conflict",
            f"the request is to follow episode {asked.episode}, but the session is in its episode "
            f"{self.episode}",
        )

    def _keep(
        self, asked: messages.Reset | messages.Restore, state: messages.State
    ) -> messages.State:
        self._begun = asked, state
        return state

    def _place(self, turn: int | None, ends: tuple[bool, bool] = (False, False)) -> None:
        self.turn, self._ends, self._reply, self._begun = turn, ends, None, None
        self.episode += 1

    def _leave_if_lost(self) -> None:
        try:
            self.env.episode_source  # noqa: B018 (asked for its exception)
        except ResetNeeded:
            self.turn, self._ends, self._reply, self._begun = None, (False, False), None, None


def _play_again(
    env_id: str, env: TextEnv, episode: snapshots.Episode, provenance: dict[str, str]
) -> list[str]:
    header = recording.make_header(env_id, env, episode.seed, episode.options, **provenance)
    kwargs = header["kwargs"]
    header["kwargs"] = {k: v for k, v in kwargs.items() if not env.is_private(k, v)}
    observation, info = env.reset(seed=episode.seed, options=episode.options)
    turns = [recording.RecordedTurn(0, "", observation, 0.0, False, False, info)]
    for action in episode.actions:
        observation, reward, terminated, truncated, info = env.step(action)
        turns.append(
            recording.RecordedTurn(
                info["turn"], action, observation, reward, terminated, truncated, info
            )
        )
    if info["state_key"] != episode.last.info["state_key"]:
        raise ReplayMismatch("the episode cannot be played again: it reached another state")
    return [wire.dumps(header), *map(recording.turn_line, turns)]
