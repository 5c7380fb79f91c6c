"""Forks of an episode: environment, the agent's history and both seats, copied in mid-episode."""

from __future__ import annotations

from harness.rollouts.episode import Episode


async def fork(episode: Episode) -> Episode:
    """Return an independent copy of an episode in progress, in the same state.

    The copy goes on as the original does where its decisions have the same seeds. Its rollout
    begins with the turns taken so far and has no recording. The caller closes its environment.

    Raises:
        EnvUnavailable: The environment cannot be forked.
    """
    env = episode.env
    twin = await episode.pool.call(env.fork, blocking=env.blocking, interrupt=env.interrupt)
    return episode.moved_to(twin)
