"""The rules of a collection of rollouts: its end, and its retries after failures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from harness.rollouts.branches import Branches
from harness.rollouts.episode import Episode, run_episode
from harness.rollouts.views import Actor
from harness.types.errors import ConfigError
from harness.types.rollout import OnFinish, Rollout


class RunEpisode(Protocol):
    """Plays one episode with an actor, as `run_episode` does."""

    async def __call__(
        self, episode: Episode, actor: Actor, *, seed: int, allow_initial_overflow: bool = False
    ) -> Rollout:
        """Return the rollout."""
        ...


def _ignore(_: Rollout) -> None:
    """Do nothing with a finished rollout."""


@dataclass(frozen=True, slots=True)
class CollectOptions:
    """How rollouts are collected.

    Collection can stop early. A group has ended once `enough_members` of its episodes have ended.
    Collection has ended once `enough_share` of its groups have ended. Episodes that still run are
    then stopped and dropped, but never before their turn `enough_turns`. Every episode that has
    ended is kept, also in groups that have not ended.

    Reference: GVPO, appendix A.1, training hyperparameters: 6 of 8 rollouts, 30 of 32 tasks, and
    only after 30 steps of rollout. The paper also says "90% of the total rollouts"; with 6 of 8
    that can only mean tasks, which its concrete conditions count. The paper does not say what
    happens to groups that are incomplete at the end. Here their finished episodes are kept, and a
    group without any finished episode is left out.

    Attributes:
        enough_members: The episodes of a group that must end, at least 1; None waits for all.
        enough_share: The share of the groups that must end, in (0, 1]; None waits for all.
        enough_turns: The turns that every episode may take before it is stopped, 0 or more.
        retries: The number of retries of a failed episode, and of a group that cannot be opened or
            whose restarted member starts in another state.
        pause_s: The seconds before the first retry; each further retry waits twice as long.
        allow_initial_overflow: Count an episode as lost if its first prompt does not fit into the
            model's context, instead of raising `ContextOverflow`.
        on_finish: A callback for each rollout once its group has ended.
        run: The function that plays an episode.
        branch: The siblings' places in a group's episodes; None for no siblings.

    Raises:
        ConfigError: A number is out of its range.
    """

    enough_members: int | None = None
    enough_share: float | None = None
    enough_turns: int = 0
    retries: int = 2
    pause_s: float = 1.0
    allow_initial_overflow: bool = False
    on_finish: OnFinish = _ignore
    run: RunEpisode = run_episode
    branch: Branches | None = None

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.enough_members is not None and self.enough_members < 1:
            raise ConfigError(f"enough_members must be at least 1, got {self.enough_members}")
        if self.enough_share is not None and not 0 < self.enough_share <= 1:
            raise ConfigError(f"enough_share must be in (0, 1], got {self.enough_share}")
        if self.enough_turns < 0:
            raise ConfigError(f"enough_turns must be at least 0, got {self.enough_turns}")

    def num_members(self, group_size: int) -> int:
        """Return how many episodes of a group must end."""
        return group_size if self.enough_members is None else min(self.enough_members, group_size)

    def num_groups(self, groups: int) -> int:
        """Return how many of the groups must end."""
        return groups if self.enough_share is None else math.ceil(self.enough_share * groups - 1e-9)
