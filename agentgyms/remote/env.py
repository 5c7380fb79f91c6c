"""`RemoteEnv`: an environment on a server that behaves like the local one."""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, TypeVar

from gymnasium.error import ClosedEnvironmentError, ResetNeeded

from agentgyms.core import randomness, snapshots
from agentgyms.core.arguments import CONNECTION_ARGUMENTS
from agentgyms.core.env import Observation, TextEnv
from agentgyms.core.errors import BadOption, ReplayMismatch, SessionLost
from agentgyms.core.images import Image
from agentgyms.core.tasks import TaskSet
from agentgyms.remote.connection import LOST, CannotRebuild, Connection
from agentgyms.remote.lease import Lease, Step
from agentgyms.remote.patience import Patience
from agentgyms.remote.protocol import framing
from agentgyms.remote.recovery import Grace, can_go_on, rebuild
from agentgyms.remote.task_pages import PagedTasks
from agentgyms.remote.transport import Transport

T = TypeVar("T")


class RemoteEnv(TextEnv):
    """The environment `env_id` behind the servers at `url`; `gymnasium.make(..., url=...)`.

    Spaces, tasks, infos, snapshots and errors are those of the local environment, whose modules are
    not imported. Seeds are drawn here, so an episode does not depend on the server. If the session
    or its server is lost during an episode, the episode is played again in another session, checked
    and continued. Use one object in one thread at a time. `copy.deepcopy` forks the session; a
    pickle opens one when it is read and restores the episode in it, and holds the token if it was
    given as an argument.

    Args:
        env_id: The id of the environment on the servers.
        url: Address of a server, or several of replicas.
        token: Bearer token; None takes the variable `AGENTGYMS_TOKEN`.
        transport: Sends the requests; None uses HTTP.
        patience: How long to wait for a server, also as numbers by their names.
        **kwargs: Arguments of the environment.

    Raises:
        ServerUnavailable: No server answers.
        ServerFull: The servers had no free place for `patience.full_s` seconds.
        Unauthorized: The token is missing or wrong.
        BadOption: An argument is wrong; also all that the local environment raises.
    """

    blocking = True

    def __new__(cls, *_: Any, **kwargs: Any) -> Self:
        """Keep the environment's own arguments, without those of the connection."""
        for name in CONNECTION_ARGUMENTS:
            kwargs.pop(name, None)
        return super().__new__(cls, **kwargs)

    def __init__(
        self,
        env_id: str,
        *,
        url: str | Sequence[str],
        token: str | None = None,
        transport: Transport | None = None,
        patience: Patience | Mapping[str, float] | None = None,
        **kwargs: Any,
    ) -> None:
        connection = Connection(env_id, url, token, transport, patience)
        try:
            lease = connection.open(kwargs)
        except BaseException:
            connection.close()
            raise
        self._attach(connection, lease, shared=False)

    @classmethod
    def adopt(
        cls, connection: Connection, lease: Lease, kwargs: dict[str, Any], *, shared: bool
    ) -> Self:
        """Return an environment in an open session; others close a `shared` connection."""
        env = cls.__new__(cls, connection.env_id, **kwargs)
        env._attach(connection, lease, shared=shared)
        return env

    def _attach(self, connection: Connection, lease: Lease, *, shared: bool) -> None:
        self._connection = connection
        self._description = description = lease.description
        self._held = [lease]
        owned = None if shared else connection
        self._release = weakref.finalize(self, _release, self._held, owned, os.getpid())
        self.metadata = {**TextEnv.metadata, "render_modes": list(description.render_modes)}
        self.splits = tuple(description.splits)  # type: ignore[misc]  # the class knows none
        self.data_version, self.stochastic = description.data_version, description.stochastic
        self.tools = framing.read_tools(connection.env_id, description)
        self.parties = {str(role): str(name) for role, name in description.parties.items()}
        self._set_up(
            description.split,
            description.max_turns,
            description.oracle,
            self._arguments.get("render_mode"),
        )
        self.observation_space = framing.read_space(description.observation_space)
        self.action_space = framing.read_space(description.action_space)

    # --- the world is on the server --------------------------------------------------------------

    def _load_tasks(self) -> TaskSet:
        listed = self._with_lease(Lease.tasks, self._episode)
        if len(listed.tasks) >= listed.total:
            return TaskSet(listed.split, listed.tasks)
        return PagedTasks(listed, self, self._connection.clone(), self._arguments)

    @property
    def data_source(self) -> str:
        """The source of the server's tasks."""
        return self._description.data_source

    def expert_actions(self) -> dict[str, str]:
        """Return the next action of each expert, from `info["oracle"]`.

        Raises `BadOption` if the environment was made without `oracle=True`, or no episode has
        begun.
        """
        oracle = self._episode.last.info.get("oracle") if self._episode else None
        if oracle is None:
            raise BadOption(
                "a server sends solutions only with oracle=True: make the environment with it, and "
                "reset it"
            )
        actions: dict[str, str] = json.loads(oracle)
        return actions

    def _plan(self, seed: int | None, options: dict[str, Any] | None) -> snapshots.Episode:
        episode = super()._plan(seed, options)
        task_id = episode.options.get("task_id", "")
        if not isinstance(task_id, str):
            # JSON may not hold it; this raises the error that a local environment raises.
            self.tasks.find(task_id)
        return episode

    def _start(self, episode: snapshots.Episode) -> tuple[Observation, dict[str, Any]]:
        held = self.lease
        try:
            last = self._with_lease(lambda lease: lease.reset(episode), None)
        except Exception:
            # The running episode goes on, but it is not in a session opened meanwhile.
            if self.lease is not held:
                self._drop_session()
            raise
        return last.observation, last.info

    def _advance(self, episode: snapshots.Episode, action: str) -> Step:
        turn = len(episode.actions) + 1
        return self._with_lease(lambda lease: lease.step(action, turn), episode)

    # --- the two halves of `reset` and `step`, for calls that many environments make in one -------

    def prepare_reset(self, seed: int | None, options: dict[str, Any] | None) -> snapshots.Episode:
        """Return the episode that a reset starts, or raise what `reset` does; then `record` it."""
        return self._plan(seed, options)

    def prepare_step(self, action: Any) -> snapshots.Episode:
        """Return the episode to act in, or raise as `step` does; `record` takes the result."""
        return self._episode_for(action)

    def record(self, episode: snapshots.Episode, last: snapshots.Last) -> None:
        """Make `episode` the running one, with `last` as what the server returned last."""
        self._record(episode, last)

    # --- snapshots -----------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the whole state of the episode and of `np_random`, also for a local environment.

        Raises `ResetNeeded` if no episode has begun.
        """
        if self._episode is None:
            raise ResetNeeded("snapshot was called before the first reset: call reset() first")
        return snapshots.with_generator(
            self._with_lease(Lease.snapshot, self._episode), self.np_random
        )

    def restore(self, snapshot: bytes) -> tuple[Observation, dict[str, Any]]:
        """Return to a snapshot, of this environment or of a local one; see `TextEnv.restore`."""
        saved = snapshots.unpack(snapshot, None)
        given = bytes(snapshot)
        try:
            last = self._with_lease(lambda lease: lease.restore(given), self._episode)
        except ReplayMismatch:
            self._episode = None
            raise
        self.np_random = saved.generator
        self._record(saved.episode, last)
        return last.observation, last.info

    def redraw(self, number: int) -> None:
        """Let chance decide the turns from here on anew; see `TextEnv.redraw`."""
        if self.stochastic:
            super().redraw(number)
            options = self.episode_source[1]
            self.restore(snapshots.with_options(self.snapshot(), options))

    def fork(self) -> Self:
        """Return an independent environment in the same state, in a session of its own."""
        lease = self._connection.when_there_is_room(
            lambda: self._with_lease(Lease.fork, self._episode)
        )
        connection = self._connection.clone()
        twin = self.adopt(connection, connection.moved(lease), self._arguments, shared=False)
        twin.spec, twin._tasks = self.spec, self._tasks
        twin.np_random = randomness.copied(self.np_random)
        if self._episode is not None:
            episode = self._episode
            copied = snapshots.Episode(episode.seed, dict(episode.options), list(episode.actions))
            twin.record(copied, episode.last)
        return twin

    def _making_arguments(self) -> dict[str, Any]:
        return self._connection.arguments | self._arguments

    # --- the session ---------------------------------------------------------------------------

    def render(self) -> str | Image | None:
        """Return the result of `render` of the server's environment."""
        if self.render_mode is None or self._episode is None:
            return None
        return self._with_lease(Lease.render, self._episode)

    def num_places(self) -> int:
        """Return how many sessions, of all clients, the servers can hold; 0 if unknown."""
        return self._connection.num_places()

    def close(self) -> None:
        """Close the session, as garbage collection does; one on a lost server expires there."""
        self._release()

    def forget(self) -> None:
        """Treat the session as lost; the next call opens another one."""
        self._held.clear()

    def _drop_session(self) -> None:
        """Forget the session and close it on its server, where it may still be open."""
        for lease in self._held:
            lease.dismiss()
        self.forget()

    def _with_lease(self, call: Callable[[Lease], T], episode: snapshots.Episode | None) -> T:
        """Return `call(session)`; a lost session is rebuilt, with `episode` played in it."""
        grace: Grace | None = None
        while True:
            try:
                if self.lease is None:
                    self.hold(rebuild(self._connection, self._arguments, episode))
                return call(self._held[0])
            except CannotRebuild as e:
                raise SessionLost(str(e)) from e
            except LOST as e:
                if not can_go_on(e):
                    raise
                self._drop_session()
                grace = grace or Grace(self._connection.patience)
                if grace.is_over():
                    raise grace.explain(e) from e
            except Exception:
                raise
            except BaseException:  # interrupted: the server may have acted, or may act later
                self._drop_session()
                raise

    @property
    def lease(self) -> Lease | None:
        """The session; None while it is lost."""
        if not self._release.alive:
            raise ClosedEnvironmentError("the remote environment was closed: make another one")
        return self._held[0] if self._held else None

    def hold(self, lease: Lease) -> None:
        """Use another session for a lost one; `CannotRebuild` if its environment is another."""
        if lease.description != self._description:
            lease.dismiss()
            raise CannotRebuild(
                f"the session was lost, and the environment at {lease.endpoint.url} is another "
                f"one: {lease.description}, not {self._description}"
            )
        self._held[:] = [lease]


def _release(held: list[Lease], connection: Connection | None, pid: int) -> None:
    if os.getpid() != pid:
        return  # a forked process has a copy of the object, but the session is its parent's
    for lease in held:
        lease.dismiss()
    held.clear()
    if connection is not None:
        connection.close()
