"""Dynamic sampling: tasks whose rollouts all have one return teach nothing, others are played."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness.agent import Actor
from harness.collect import EnvPool
from harness.credit import TurnTable
from harness.credit.returns import episode_returns
from harness.dealing import collect_dealt
from harness.errors import ConfigError
from harness.ranks import ALONE, Ranks
from harness.rollout import Rollout
from harness.sampling import TaskDraw, seed_of

_EQUAL: Final = 1e-9
"""Returns that differ by less are equal: sums of the same rewards in another order."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """What dynamic sampling collected.

    Attributes:
        rollouts: Of the groups kept, numbered anew from 0, in the order in which they were drawn.
        lost: One rollout with `error` for each group whose environments kept failing.
        rounds: How many rounds of tasks were played.
        played: Groups played in them, lost ones included.
        dropped: Groups left out because their returns were all equal.
        surplus: Informative groups left out because there were enough.
    """

    rollouts: list[Rollout]
    lost: list[Rollout]
    rounds: int
    played: int
    dropped: int
    surplus: int

    def figures(self) -> dict[str, float]:
        """Return the figures of a step, under `rollout/`."""
        return {
            "rollout/rounds": float(self.rounds),
            "rollout/groups_played": float(self.played),
            "rollout/groups_dropped": float(self.dropped),
            "rollout/groups_surplus": float(self.surplus),
        }


async def collect_informative(
    pool: EnvPool,
    draw: Callable[[int], Sequence[TaskDraw]],
    actor: Actor,
    *,
    seed: int,
    informative: Callable[[Sequence[Rollout]], bool],
    max_draws: int = 10,
    ranks: Ranks = ALONE,
    **options: Any,
) -> Rounds:
    """Return rollouts of as many groups as a step's own draw has tasks, informative ones if it can.

    Rounds of tasks are played, each as large as the first, and informative groups kept, until there
    are enough. The last round that may be played fills up with groups of its own that are not.

    Reference: DAPO, arXiv:2503.14476, dynamic sampling; the limit of rounds, and that the last one
    fills up, are those of verl-agent's released code.
    Departs from them: the tasks of later rounds come from a shuffle of the step's own and not from
    the pass over all tasks, so that no step depends on how many rounds others took.

    Args:
        pool: Where the environments come from.
        draw: Tasks of a round, from 0, such as `lambda again: sampler.draw(step, count, again)`.
        actor: Who decides.
        seed: Of the first round's decisions, as for `collect`; later rounds derive theirs from it.
        informative: Whether the rollouts of a group are worth learning from; see `returns_differ`.
        max_draws: Most rounds, at least 1.
        ranks: The processes that a round's tasks are dealt to.
        **options: As for `collect`.

    Raises:
        ConfigError: `max_draws` is less than 1.
    """
    if max_draws < 1:
        raise ConfigError(f"rollout.max_draws must be at least 1, got {max_draws}")
    kept: list[list[Rollout]] = []
    lost: list[Rollout] = []
    wanted = played = dropped = again = 0
    for again in range(max_draws):
        draws = draw(again)
        wanted = wanted or len(draws)
        round_seed = seed_of(seed, again) if again else seed
        rollouts = await collect_dealt(ranks, pool, draws, actor, seed=round_seed, **options)
        lost += [rollout for rollout in rollouts if rollout.error]
        worth, equal = _parted(rollouts, informative)
        kept, played, dropped = kept + worth, played + len(draws), dropped + len(equal)
        if len(kept) >= wanted:
            break
    else:
        fill = equal[: wanted - len(kept)]
        kept, dropped = kept + fill, dropped - len(fill)
    chosen = _renumbered(kept[:wanted])
    return Rounds(chosen, lost, again + 1, played, dropped, max(0, len(kept) - wanted))


def _parted(
    rollouts: Sequence[Rollout], informative: Callable[[Sequence[Rollout]], bool]
) -> tuple[list[list[Rollout]], list[list[Rollout]]]:
    """Return the groups that are informative, and those that are not."""
    groups: dict[int, list[Rollout]] = {}
    for rollout in rollouts:
        if rollout.turns:  # none of lost ones
            groups.setdefault(rollout.group, []).append(rollout)
    worth: list[list[Rollout]] = []
    equal: list[list[Rollout]] = []
    for members in groups.values():
        (worth if informative(members) else equal).append(members)
    return worth, equal


def _renumbered(groups: Sequence[Sequence[Rollout]]) -> list[Rollout]:
    for index, members in enumerate(groups):
        for rollout in members:
            rollout.group = index
    return [rollout for members in groups for rollout in members]


def returns_differ(rollouts: Sequence[Rollout], reward: str = "environment") -> bool:
    """Return whether the returns of a group are not all equal.

    Args:
        rollouts: Of one group.
        reward: What is trained on, as for `TurnTable.from_rollouts`.
    """
    returns = episode_returns(TurnTable.from_rollouts(rollouts, reward=reward))
    return float(returns.max() - returns.min()) > _EQUAL
