"""Siblings: episodes that share the first turns of an ended one and continue from there.

Once the episodes of a group have ended, some of their turns are chosen. Siblings are restored right
before them, on the group's environments, and draw the turn's action anew. The choice of turns and
the decisions of siblings depend on seeds and rollouts alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np

from agentgyms.core.errors import EnvUnavailable, ReplayMismatch
from agentgyms.registration import GroupEnv
from harness.config.rollout_settings import BranchConfig
from harness.credit import TurnTable
from harness.credit.estimators import ecpo
from harness.credit.estimators.signals.oracle import oracle
from harness.rollouts.episode import BRANCH, Episode, describe
from harness.types.errors import ConfigError
from harness.types.rollout import Rollout, Turn, Usage
from harness.types.task_draws import seed_of

_BRANCHES: Final = 3
"""Stream of random numbers of the choice of turns."""


class At(NamedTuple):
    """A turn that siblings branch at: the member of the group that took it, and its number."""

    member: int
    turn: int


@dataclass(frozen=True, slots=True)
class Branches:
    """Where siblings branch from the episodes of a group."""

    settings: BranchConfig
    seed: int = 0
    reward: str = "environment"  # "divergent" and "pivotal" compare it
    gamma: float = 1.0  # discount of the continuations that "pivotal" compares
    reward_scale: float = 1.0  # factor on their rewards

    def choose(
        self, rollouts: Sequence[Rollout], group: int, number: int = 0, taken: Collection[At] = ()
    ) -> list[At]:
        """Return the branch turns in ended rollouts of a group, the most wanted first.

        Siblings follow their parent in `rollouts`. Turns in `taken`, from earlier rounds, are left
        out. Raises `ConfigError` if the choice needs log-probabilities or state values that are
        missing.
        """
        turns = [
            (At(r.member, t), turn)
            for r in rollouts
            for t, turn in enumerate(r.turns)
            if t > r.branch_turn  # a sibling's first turn is one more of its parent's state
        ]
        settings, allowed = self.settings, {at for at, _ in turns}.difference(taken)
        if settings.at == "every":
            ranked = [at for at, _ in turns if at.turn % settings.every == 0]
            ranked.sort(key=lambda at: at.turn)
        elif settings.at == "uniform":
            rng = np.random.default_rng(seed_of(self.seed, _BRANCHES, group, number))
            ranked = [turns[i][0] for i in rng.permutation(len(turns))]
        elif settings.at == "entropy":
            ranked = [at for at, _ in sorted(turns, key=lambda one: -_surprise(one[1]))]
        elif settings.at == "pivotal":
            ranked = _pivotal(rollouts, self.reward, self.gamma, self.reward_scale)
        else:
            ranked = _divergent(rollouts, self.reward)
        return [at for at in ranked if at in allowed][: settings.points]

    def is_spent(self, siblings: Sequence[Rollout]) -> bool:
        """Return whether these siblings of a group have used up its budget."""
        used = dict(zip(("steps", "tokens"), cost(siblings), strict=True))
        return any(used[name] >= most for name, most in self.settings.budget.items())


def cost(siblings: Sequence[Rollout]) -> tuple[int, int]:
    """Return siblings' environment steps after their branch turns, and their tokens."""
    turns = [turn for rollout in siblings for turn in rollout.own_turns]
    usage = sum((one.usage for turn in turns for one in turn.answers), Usage())
    return len(turns), usage.prompt + usage.response


def _surprise(turn: Turn) -> float:
    """Return the mean of -log p over a turn's tokens: AT2PO's estimate of the policy's entropy."""
    logprobs = [value for one in turn.answers for value in one.logprobs]
    if not logprobs:
        raise ConfigError(
            "rollout.branch.at is 'entropy', which needs the log-probabilities of the tokens, and "
            "the completer reports none: choose 'every', 'uniform' or 'divergent'"
        )
    return -sum(logprobs) / len(logprobs)


def _pivotal(rollouts: Sequence[Rollout], reward: str, gamma: float, scale: float) -> list[At]:
    """Return the turns in descending order of their measured |r_t + gamma V_{t+1} - V_t|."""
    known = [r.state_returns for r in rollouts if r.state_returns is not None]
    if len(known) < len(rollouts):
        raise ConfigError(
            "rollout.branch.at is 'pivotal', which needs the values of states, and the rollouts "
            "have none: they were played without continuations"
        )
    table = TurnTable.from_rollouts(rollouts, reward=reward, reward_scale=scale)
    values = np.concatenate([returns.mean(axis=1) for returns in known])  # [N], from [N, K]
    gaps = np.abs(oracle(replace(table, state_value=values), gamma=gamma))  # [N]
    order = np.argsort(-gaps, kind="stable")  # equal gaps stay in the order of turns
    return [At(rollouts[table.rollout[row]].member, int(table.turn[row])) for row in order]


def _divergent(rollouts: Sequence[Rollout], reward: str) -> list[At]:
    """Return the first later visit of each state where ECPO's raw returns mislead (Figure 1)."""
    table = TurnTable.from_rollouts(rollouts, reward=reward)
    found = []
    for anchor in ecpo.anchors(table):
        rows = np.sort(np.concatenate([action.rows for action in anchor.actions]))
        later = rows[table.turn[rows] > 0]
        if anchor.divergent and len(later):
            row = int(later[0])
            found.append(At(rollouts[table.rollout[row]].member, int(table.turn[row])))
    return found


class SiblingRunner:
    """Plays the siblings of one group, on the environments of its ended episodes."""

    def __init__(
        self,
        branches: Branches,
        group: GroupEnv,
        episodes: Sequence[Episode],
        play: Callable[[Episode], Coroutine[Any, Any, Rollout]],
        retries: int,
        pause_s: float,
    ) -> None:
        self._branches, self._group, self._episodes = branches, group, episodes
        self._play_episode, self._retries, self._pause_s = play, retries, pause_s
        self._points = {episode.member: episode.points for episode in episodes}
        self._free: asyncio.Queue[int] = asyncio.Queue()
        for slot in range(len(group)):
            self._free.put_nowait(slot)

    async def run(self, rollouts: Sequence[Rollout]) -> list[Rollout]:
        """Return the siblings of ended rollouts, numbered after the group's members.

        With a budget they play turn by turn, and the last turn's siblings may exceed it; without
        one all play at once. Raises `GroupMismatch` if a fresh environment starts in another state.
        """
        branches, played, taken = self._branches, list[Rollout](), set[At]()
        for number in range(branches.settings.rounds):
            whole = [one for one in (*rollouts, *played) if not one.error and one.own_turns]
            chosen = branches.choose(whole, self._episodes[0].group, number, taken)
            parents = {rollout.member: rollout for rollout in whole}
            # With a budget the cost of one turn's siblings decides whether the next one has any.
            at_once = 1 if branches.settings.budget else max(len(chosen), 1)
            for first in range(0, len(chosen), at_once):
                if branches.is_spent(played):
                    break
                part = chosen[first : first + at_once]
                played += await self._play(part, parents, len(self._episodes) + len(played))
            taken.update(chosen)
        return [rollout for rollout in played if rollout.error or rollout.own_turns]

    async def _play(
        self, chosen: Sequence[At], parents: Mapping[int, Rollout], member: int
    ) -> list[Rollout]:
        """Return the siblings at these turns, numbered from `member` on."""
        own = [at for at in chosen for _ in range(self._branches.settings.siblings)]
        tasks = [
            asyncio.ensure_future(self._play_one(parents[at.member], at.turn, member + i))
            for i, at in enumerate(own)
        ]
        try:
            return await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _play_one(self, parent: Rollout, turn: int, member: int) -> Rollout:
        """Return a sibling's rollout, with an error if it failed more often than retries allow."""
        rollout = Rollout(parent.task_id, parent.family, parent.group, member, parent.seed)
        slot = await self._free.get()
        try:
            for attempt in range(self._retries + 1):
                if attempt:
                    await asyncio.sleep(self._pause_s * 2 ** (attempt - 1))
                try:
                    twin = await self._restored(parent, turn, slot, member, fresh=attempt > 0)
                except (EnvUnavailable, ReplayMismatch) as e:
                    rollout.error = describe(e)
                    continue
                twin.member = twin.rollout.member = member
                self._points[member] = twin.points
                rollout = await self._play_episode(twin)
                if not rollout.error:
                    break
        finally:
            self._free.put_nowait(slot)
        return rollout

    async def _restored(
        self, parent: Rollout, turn: int, slot: int, member: int, *, fresh: bool
    ) -> Episode:
        """Return an episode right before its parent's turn, on a slot; chance is drawn anew."""
        points = self._points[parent.member]
        assert points is not None
        point, group = points[turn], self._group

        def restore() -> None:
            if fresh:
                group.begin_again(slot)
            group.envs[slot].restore(point.snapshot)
            group.envs[slot].redraw(member)

        env = group.envs[slot]
        await point.episode.pool.call(
            restore, blocking=env.blocking, interrupt=lambda: group.envs[slot].interrupt()
        )
        twin = point.episode.moved_to(group.envs[slot])
        twin.stop_at = None
        # Later rounds may branch from this sibling, so it keeps its parent's earlier points.
        twin.points = points[:turn] if self._branches.settings.rounds > 1 else None
        twin.rollout.parent, twin.rollout.branch_turn = parent.member, turn
        if parent.state_returns is not None:
            twin.rollout.state_returns = parent.state_returns[:turn]
        if parent.recording is not None:
            branch = {"parent": parent.member, "turn": turn}
            options = twin.env.episode_source[1]
            header = {**parent.recording.header, "options": options, BRANCH: branch}
            turns = parent.recording.turns[: point.recorded]
            twin.rollout.recording = replace(parent.recording, header=header, turns=turns)
        return twin
