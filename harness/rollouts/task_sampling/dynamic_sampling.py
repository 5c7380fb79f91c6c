"""Dynamic sampling: groups whose returns are all equal are replaced by groups of other tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from harness.credit import TurnTable
from harness.credit.shared import episode_returns
from harness.distributed.process_group import SINGLE_PROCESS, ProcessGroup
from harness.rollouts.collect import collect_distributed
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.groups import CollectOptions
from harness.rollouts.views import Actor
from harness.types.rollout import Rollout
from harness.types.task_draws import TaskDraw, seed_of

MAX_DRAWS: Final = 10
"""Most rounds of tasks in a step."""

_EQUAL: Final = 1e-9
"""Returns that differ by less count as equal, because sums depend on the order of rewards."""


@dataclass(frozen=True, slots=True)
class DynamicSample:
    """The result of dynamic sampling."""

    rollouts: list[Rollout]  # of the groups kept, renumbered from 0 in the order of the draws
    lost: list[Rollout]  # one with `error` for each group that kept failing
    rounds: int
    played: int  # groups of all rounds, lost ones included
    dropped: int  # groups with equal returns
    surplus: int  # informative groups beyond the wanted number

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
    max_draws: int = MAX_DRAWS,
    processes: ProcessGroup = SINGLE_PROCESS,
    options: CollectOptions = CollectOptions(),  # noqa: B008 (frozen)
) -> DynamicSample:
    """Return rollouts of as many groups as a step has tasks, informative groups where possible.

    Each round r plays the tasks `draw(r)`; it stops once enough groups are `informative`. If
    `max_draws` rounds do not give enough, uninformative groups of the last round fill the gap.

    Reference: DAPO, arXiv:2503.14476, dynamic sampling. The limit of rounds, and filling the
    gap in the last one, follow verl-agent's released code.
    Difference: tasks of later rounds come from a separate shuffle for the step, not from the pass
    over all tasks, so that no step depends on the number of rounds of other steps.
    """
    kept: list[list[Rollout]] = []
    lost: list[Rollout] = []
    wanted = played = dropped = index = 0  # numbers of groups
    for index in range(max_draws):
        draws = draw(index)
        wanted = wanted or len(draws)
        round_seed = seed_of(seed, index) if index else seed
        rollouts = await collect_distributed(
            processes, pool, draws, actor, seed=round_seed, options=options
        )
        lost += [rollout for rollout in rollouts if rollout.error]
        differing, equal = _split_informative(rollouts, informative)
        kept, played, dropped = kept + differing, played + len(draws), dropped + len(equal)
        if len(kept) >= wanted:
            break
    else:
        # The loop ended without enough informative groups.
        fill = equal[: wanted - len(kept)]
        kept, dropped = kept + fill, dropped - len(fill)
    for number, members in enumerate(kept[:wanted]):
        for rollout in members:
            rollout.group = number
    chosen = [rollout for members in kept[:wanted] for rollout in members]
    return DynamicSample(chosen, lost, index + 1, played, dropped, max(0, len(kept) - wanted))


def _split_informative(
    rollouts: Sequence[Rollout], informative: Callable[[Sequence[Rollout]], bool]
) -> tuple[list[list[Rollout]], list[list[Rollout]]]:
    """Return the informative groups and the others; lost groups are in neither list."""
    groups: dict[int, list[Rollout]] = {}
    for rollout in rollouts:
        if rollout.turns:  # lost groups have none
            groups.setdefault(rollout.group, []).append(rollout)
    differing: list[list[Rollout]] = []
    equal: list[list[Rollout]] = []
    for members in groups.values():
        (differing if informative(members) else equal).append(members)
    return differing, equal


def returns_differ(rollouts: Sequence[Rollout], reward: str = "environment") -> bool:
    """Return whether the returns of a group, by the training reward `reward`, are not all equal."""
    returns = episode_returns(TurnTable.from_rollouts(rollouts, reward=reward))
    return float(returns.max() - returns.min()) > _EQUAL
