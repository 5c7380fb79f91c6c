"""`RemoteEnv`: an environment on a server that behaves like the local one."""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Self, TypeVar

import numpy as np
from gymnasium.error import ClosedEnvironmentError

from agentgyms import protocol, randomness, snapshots
from agentgyms.arguments import OF_CONNECTIONS
from agentgyms.core import Observation, Outcome, TextEnv
from agentgyms.errors import BadOption, ReplayMismatch, SessionLost
from agentgyms.images import Image
from agentgyms.remote.connection import LOST, CannotRebuild, Connection
from agentgyms.remote.lease import Lease, Step
from agentgyms.remote.patience import Patience
from agentgyms.remote.recovery import Grace, can_go_on, rebuild
from agentgyms.remote.task_pages import PagedTasks
from agentgyms.remote.transport import Transport
from agentgyms.tasks import Task, TaskSet

T = TypeVar("T")


class RemoteEnv(TextEnv):
    """The environment `env_id` behind the servers at `url`; `gymnasium.make(..., url=...)`.

    Spaces, tasks, infos, snapshots and errors are those of the local environment; nothing of it is
    imported here. Seeds are drawn here, so an episode does not depend on where it is played. If the
    session or its server is lost within an episode, the episode is played again in another session,
    checked and continued. Use one object in one thread at a time.

    Args:
        env_id: What the servers serve.
        url: Address of a server, or several of replicas.
        token: Bearer token; None takes the variable `AGENTGYMS_TOKEN`.
        transport: Carries the requests; None uses HTTP.
        patience: How long to wait for a server.
        **kwargs: Arguments of the environment.

    Raises:
        ServerUnavailable: No server answers.
        ServerFull: The servers have no place, for longer than patience lasts.
        Unauthorized: The token is missing or wrong.
        BadOption: An argument is wrong; also all that the local environment raises.
    """

    blocking = True

    def __new__(cls, *_: Any, **kwargs: Any) -> Self:
        """Remember the environment's own arguments; those of the connection are not among them."""
        for name in OF_CONNECTIONS:
            kwargs.pop(name, None)
        return super().__new__(cls, **kwargs)

    def __init__(
        self,
        env_id: str,
        *,
        url: str | Sequence[str],
        token: str | None = None,
        transport: Transport | None = None,
        patience: Patience | None = None,
        **kwargs: Any,
    ) -> None:
        """Open a session."""
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
        """Return an environment around a session that is open already.

        Args:
            connection: Where the session is.
            lease: The session.
            kwargs: What it was opened with.
            shared: Others use the connection too and close it.
        """
        env = cls.__new__(cls, connection.env_id, **kwargs)
        env._attach(connection, lease, shared=shared)
        return env

    def _attach(self, connection: Connection, lease: Lease, *, shared: bool) -> None:
        self._connection = connection
        self._description = lease.description
        self._held = [lease]
        owned = None if shared else connection
        self._release = weakref.finalize(self, _release, self._held, owned, os.getpid())
        description = lease.description
        self.metadata = {**TextEnv.metadata, "render_modes": list(description.render_modes)}
        self.splits = tuple(description.splits)  # type: ignore[misc]  # the class knows none
        self.data_version = description.data_version
        self.parties = {str(role): str(name) for role, name in description.parties.items()}
        super().__init__(
            split=description.split,
            max_turns=description.max_turns,
            oracle=description.oracle,
            render_mode=self._arguments.get("render_mode"),
        )
        self.observation_space = protocol.read_space(description.observation_space)
        self.action_space = protocol.read_space(description.action_space)

    # --- the world is on the server --------------------------------------------------------------

    def load_tasks(self) -> TaskSet:
        """Return the tasks of the split, as the server has them."""
        listed = self._with_lease(Lease.tasks, self._episode)
        if len(listed.tasks) >= listed.total:
            return TaskSet(listed.split, listed.tasks)
        return PagedTasks(listed, self, self._connection.clone(), self._arguments)

    def begin(self, task: Task, rng: np.random.Generator) -> Outcome:
        """Never called: the server's environment begins the episode."""
        raise NotImplementedError

    def act(self, action: str) -> Outcome:
        """Never called: the server's environment acts."""
        raise NotImplementedError

    def expert_actions(self) -> dict[str, str]:
        """Return the next action of each expert, from `info["oracle"]`.

        Raises:
            BadOption: The environment was made without `oracle=True`, or no episode has begun.
        """
        told = self._episode.last.info.get("oracle") if self._episode else None
        if told is None:
            raise BadOption(
                "a server tells solutions only with oracle=True: make the environment with it, and "
                "reset it"
            )
        actions: dict[str, str] = json.loads(told)
        return actions

    def _plan(self, seed: int | None, options: dict[str, Any] | None) -> snapshots.Episode:
        episode = super()._plan(seed, options)
        task_id = episode.options.get("task_id", "")
        if not isinstance(task_id, str):
            self.tasks.find(
                task_id
            )  # raises what a local environment raises; JSON might not hold it
        return episode

    def _start(self, episode: snapshots.Episode) -> tuple[Observation, dict[str, Any]]:
        held = self.lease
        try:
            last = self._with_lease(lambda lease: lease.reset(episode), None)
        except Exception:
            if self.lease is not held:  # the running episode goes on, but not in a new session
                self._give_up()
            raise
        return last.observation, last.info

    def _advance(self, episode: snapshots.Episode, action: str) -> Step:
        turn = len(episode.actions) + 1
        return self._with_lease(lambda lease: lease.step(action, turn), episode)

    # --- snapshots -----------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the whole state of the episode and of `np_random`; a local one restores it."""
        if self._episode is None:
            return super().snapshot()  # which raises
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
        self._note(saved.episode, last)
        return last.observation, last.info

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
            twin._note(copied, episode.last)
        return twin

    # --- the session ---------------------------------------------------------------------------

    def render(self) -> str | Image | None:
        """Return what the server's environment renders."""
        if self.render_mode is None or self._episode is None:
            return None
        return self._with_lease(Lease.render, self._episode)

    def num_places(self) -> int:
        """Return how many sessions the servers hold together, others' included; 0 if unknown."""
        return self._connection.num_places()

    def close(self) -> None:
        """Close the session. An object that is forgotten does so too; a lost one expires."""
        self._release()

    def forget(self) -> None:
        """Take the session for lost; the next call opens another one."""
        self._held.clear()

    def _give_up(self) -> None:
        """Forget the session, but let its server know: it may be there all the same."""
        for lease in self._held:
            lease.dismiss()
        self.forget()

    def _with_lease(self, call: Callable[[Lease], T], episode: snapshots.Episode | None) -> T:
        """Return `call(session)`; a lost session is rebuilt, with `episode` played in it."""
        grace = Grace(self._connection.patience)
        while True:
            try:
                return call(self._lease_at(episode))
            except CannotRebuild as e:
                raise SessionLost(str(e)) from e
            except LOST as e:
                if not can_go_on(e):
                    raise
                self._give_up()
                if grace.over():
                    raise grace.told(e) from e
            except Exception:
                raise
            except BaseException:  # interrupted: the server may have acted, or do so yet
                self._give_up()
                raise

    @property
    def lease(self) -> Lease | None:
        """The session; None while it is lost."""
        if not self._release.alive:
            raise ClosedEnvironmentError("the remote environment was closed: make another one")
        return self._held[0] if self._held else None

    def _lease_at(self, episode: snapshots.Episode | None) -> Lease:
        lease = self.lease
        if lease is None:
            lease = rebuild(self._connection, self._arguments, episode)
            self.hold(lease)
        return lease

    def hold(self, lease: Lease) -> None:
        """Go on in another session, in place of a lost one.

        Raises:
            CannotRebuild: The environment in it is another one.
        """
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
