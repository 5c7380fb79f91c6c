"""Open rollouts of agents, and the groups that are whole. All methods may be called by threads."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from harness.training.gateway.chat_requests import Refused
from harness.training.gateway.ended_rollouts import (
    Ended,
    Members,
    check_numbers,
    check_start,
    kept,
    restored,
)
from harness.training.gateway.name_ledger import MOST_NAMES, NameLedger
from harness.training.gateway.token_memory import TokenMemory
from harness.training.gateway.turns_of_calls import Call
from harness.types.rollout import Rollout

MOST_OPEN: Final = 4096
TTL_S: Final = 3600.0
"""A rollout without a request for as long expires, and so does a group without an open one."""

_LOOK_S: Final = TTL_S / 60
_LONGEST_NAME: Final = 200


@dataclass(slots=True, eq=False)
class OpenRollout:
    """A rollout that an agent plays."""

    name: str  # the agent's
    group: str
    task: str  # "" if the session knows it
    session: str  # on the environment's server; "" for none
    number: int  # counts rollouts from 0
    memory: TokenMemory
    is_settled: bool = False  # begun with its session: agents may number sessions of their own
    calls: list[Call] = field(default_factory=list)  # in the order of their requests
    num_requests: int = 0  # requests so far, with or without an answer
    used_at: float = 0.0  # when the last request came, on the book's clock
    lock: threading.Lock = field(default_factory=threading.Lock)  # guards calls and memory


class RolloutBook:
    """Open rollouts by name, and the groups that they belong to.

    A session is of one open rollout, and each of its episodes of one rollout. The clock is
    monotonic, in seconds. `ledger` knows the rollouts of earlier processes; None stands for none.

    A checkpoint keeps the rollouts that have ended and are not learned from yet. Rollouts that a
    kill cut off are refused: what is left of them is no episode.
    """

    def __init__(
        self,
        group_size: int,
        make_memory: Callable[[], TokenMemory],
        clock: Callable[[], float] = time.monotonic,
        ledger: NameLedger | None = None,
    ) -> None:
        self._size, self._make_memory, self._clock = group_size, make_memory, clock
        self._ledger = ledger
        self._lock = threading.Lock()
        self._players: dict[str, str] = {}  # session -> its open rollout
        self._rewarded: OrderedDict[str, int] = OrderedDict()  # session -> last episode
        self._changed: dict[str, float] = {}  # group -> when a member came or ended
        self._expired: OrderedDict[str, None] = OrderedDict()
        self._next_look = self._clock() + _LOOK_S
        self._open: dict[str, OpenRollout] = {}
        self._groups: dict[str, Members] = {}
        self._whole: deque[list[Ended]] = deque()
        self._finished: OrderedDict[str, None] = OrderedDict()
        self._begun = 0

    def open(self, name: str, *, settle: bool = False, **given: str) -> OpenRollout:
        """Return the rollout of a name; a new one joins its group.

        `given` may have `group`, `task` and `session`; "" stands for unknown. One who comes first
        may `settle` the session: what others give is not read then. Raises `Refused` if a name is
        missing or differs from before, the rollout has ended, or its group is full.
        """
        if not name or any(len(one) > _LONGEST_NAME for one in (name, *given.values())):
            what = f"of 1 to {_LONGEST_NAME} characters"
            raise Refused(f"a call belongs to a rollout: give its id {what} in X-Rollout-Id")
        with self._lock:
            self._expire()
            found = self._open.get(name)
            if found is None:
                found = self._begin(name, **given)
                found.is_settled = settle and bool(found.session)
                return found
            self.touch(found)
            if found.is_settled and not settle:
                given = given | {"session": ""}
            for kind, value in given.items():
                was = getattr(found, kind)
                if value not in ("", was):
                    raise Refused(f"rollout {name:.40} has {kind} {was!r:.60}, got {value!r:.60}")
            return found

    def _begin(self, name: str, group: str = "", task: str = "", session: str = "") -> OpenRollout:
        if name in self._finished:
            raise Refused(f"rollout {name:.60} has ended: take another id for the next one", 409)
        if name in self._expired:
            raise Refused(
                f"rollout {name:.60} had no request for {TTL_S:.0f} s and expired: take another id",
                410,
                "expired",
            )
        self._check_lost(name)
        if session in self._players:
            raise Refused(
                f"session {session:.40} is played by rollout {self._players[session]:.60}: give "
                "each rollout a session of its own",
                409,
            )
        if not group:
            raise Refused(
                f"rollout {name:.60} is new: give its group in X-Group-Id; the rollouts of a group "
                f"start in one state, and there are {self._size} of them"
            )
        if len(self._groups.get(group, ())) == self._size:
            raise Refused(f"group {group:.60} has all of its {self._size} rollouts", 409)
        if len(self._open) >= MOST_OPEN:
            raise Refused(f"{MOST_OPEN} rollouts are open: end some of them first", 429)
        self._note(name)
        self._groups.setdefault(group, {})[name] = None
        made = OpenRollout(name, group, task, session, self._begun, self._make_memory())
        made.used_at = self._changed[group] = self._clock()
        self._open[name], self._begun = made, self._begun + 1
        if session:
            self._players[session] = name
        return made

    def _check_lost(self, name: str) -> None:
        if self._ledger is not None and name in self._ledger.earlier:
            raise Refused(
                f"rollout {name:.60} was cut off when the run was interrupted: take another id, "
                "and begin its episode again",
                410,
                "lost",
            )

    def _note(self, name: str) -> None:
        try:
            if self._ledger is not None:
                self._ledger.add(name)
        except OSError as e:
            reason = e.strerror or e
            raise Refused(f"rollout {name:.60} cannot be noted on the disk: {reason}", 503) from e

    def _expire(self) -> None:
        """Drop the rollouts and groups that were abandoned; one that waits for an answer is not."""
        if self._clock() < self._next_look:
            return
        self._next_look = self._clock() + _LOOK_S
        oldest = self._clock() - TTL_S
        for one in [one for one in self._open.values() if one.used_at < oldest]:
            if all(call.answer is not None for call in list(one.calls)):
                self._close(one)
                self._leave_group(one)
                _keep(self._expired, one.name, None)
        for group in [group for group, at in self._changed.items() if at < oldest]:
            if all(self._groups[group].values()):
                del self._groups[group], self._changed[group]

    def _close(self, rollout: OpenRollout) -> None:
        del self._open[rollout.name]
        self._players.pop(rollout.session, None)

    def _leave_group(self, rollout: OpenRollout) -> None:
        members = self._groups[rollout.group]
        del members[rollout.name]
        if not members:
            del self._groups[rollout.group], self._changed[rollout.group]

    def find(self, name: str) -> OpenRollout:
        """Return an open rollout. Raises `Refused` if there is none."""
        with self._lock:
            return self._find(name)

    def _find(self, name: str) -> OpenRollout:
        if name not in self._open:
            if name not in self._finished:
                self._check_lost(name)
            raise Refused(f"no rollout {name:.60} is open", 404, "no_rollout")
        return self._open[name]

    def touch(self, rollout: OpenRollout) -> None:
        """Note that a rollout is played."""
        rollout.used_at = self._clock()

    def has_finished(self, name: str) -> bool:
        """Return whether a rollout has got its reward."""
        with self._lock:
            return name in self._finished

    def drop(self, name: str) -> None:
        """Drop an open rollout and free its group's place; raise `Refused` if there is none."""
        with self._lock:
            found = self._find(name)
            self._close(found)
            self._leave_group(found)

    def check_episode(self, session: str, episode: int) -> None:
        """Raise `Refused` if an earlier rollout was rewarded for an episode of a session."""
        with self._lock:
            if self._rewarded.get(session, -1) >= episode:
                raise Refused(
                    f"episode {episode} of session {session:.40} is another rollout's: reset the "
                    "session first",
                    409,
                )

    def finish(self, ended: OpenRollout, rollout: Rollout) -> None:
        """Add an ended rollout to its group.

        Raises `Refused` without a score, for a reward that no float32 holds, or for another first
        state.
        """
        if not rollout.turns or math.isnan(rollout.score):
            raise Refused("the episode has no turn or no score: drop the rollout", 409)
        check_numbers(rollout)
        with self._lock:
            if self._find(ended.name) is not ended:
                raise Refused(f"rollout {ended.name:.60} was dropped", 409)
            members = self._groups[ended.group]
            if ended.session:
                check_start(ended.group, rollout, members)
            members[ended.name] = Ended(rollout, min(call.weights for call in ended.calls))
            self._close(ended)
            _keep(self._finished, ended.name, None)
            if ended.session and ended.calls[0].position:
                _keep(self._rewarded, ended.session, ended.calls[0].position.episode)
            self._changed[ended.group] = self._clock()
            done = [one for _, one in sorted(members.items()) if one is not None]
            if len(done) == self._size:
                self._whole.append(done)
                del self._groups[ended.group], self._changed[ended.group]

    def take(self, count: int) -> list[list[Ended]]:
        """Return the oldest whole groups, at most `count`; members in the order of their names."""
        with self._lock:
            return [self._whole.popleft() for _ in range(min(count, len(self._whole)))]

    @property
    def num_whole(self) -> int:
        """How many groups are whole."""
        return len(self._whole)

    def counts(self) -> dict[str, int]:
        """Return how many rollouts are open, and how many groups are begun and whole."""
        with self._lock:
            return {
                "open_rollouts": len(self._open),
                "begun_groups": len(self._groups),
                "whole_groups": len(self._whole),
            }

    def state_dict(self) -> dict[str, Any]:
        """Return what a checkpoint keeps; open rollouts are not in it."""
        with self._lock:
            whole = [*self._whole]
            begun = {name: {**members} for name, members in self._groups.items()}
            counted = {
                "finished": [*self._finished],
                "rewarded": {**self._rewarded},
                "begun": self._begun,
            }
        return counted | {
            "whole": [[kept(one) for one in group] for group in whole],
            "groups": {
                name: {member: kept(one) for member, one in members.items() if one is not None}
                for name, members in begun.items()
                if any(members.values())
            },
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what a checkpoint has kept; raise `ValueError` if it is damaged."""
        with self._lock:
            self._finished = OrderedDict.fromkeys(state["finished"])
            self._rewarded = OrderedDict(state["rewarded"])
            self._begun = int(state["begun"])
            self._whole = deque([restored(one) for one in group] for group in state["whole"])
            self._groups = {
                name: {member: restored(one) for member, one in members.items()}
                for name, members in state["groups"].items()
            }
            self._changed = dict.fromkeys(self._groups, self._clock())


def _keep(kept: OrderedDict[str, Any], name: str, value: Any) -> None:
    kept.pop(name, None)
    kept[name] = value
    if len(kept) > MOST_NAMES:
        kept.popitem(last=False)
