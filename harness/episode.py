"""One episode: an environment that was reset, played to its end by whoever decides."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agentgyms.core import Feedback, Observation, TextEnv
from agentgyms.errors import EnvUnavailable
from harness.agent import Actor, EpisodeView
from harness.errors import ContextOverflow
from harness.images import look
from harness.rollout import Rollout, StopReason, Turn
from harness.sampling import TaskDraw, seed_of

if TYPE_CHECKING:
    from harness.collect import EnvPool


@dataclass(slots=True)
class Episode:
    """One episode about to be played: an environment that was reset, and what it answered.

    Attributes:
        rollout: What has been played of it.
        stop_at: It stops at this turn or as soon as it has passed it; None plays to the end.
    """

    pool: EnvPool
    env: TextEnv
    draw: TaskDraw
    group: int
    member: int
    observation: Observation
    info: dict[str, Any]
    rollout: Rollout = field(init=False)
    stop_at: int | None = None

    def __post_init__(self) -> None:
        """Begin the rollout."""
        self.rollout = Rollout(
            self.draw.task_id,
            self.info["family"],
            self.group,
            self.member,
            self.draw.seed,
            goal=self.info["goal"],
        )


async def run_episode(episode: Episode, actor: Actor, *, seed: int) -> Rollout:
    """Play one episode to its end.

    A failure of the environment's infrastructure ends it with `error`; a bad action never does. A
    prompt that outgrows the model's context ends it as lost. It is `STOPPED` at `episode.stop_at`.

    Raises:
        ContextOverflow: The very first prompt does not fit.
    """
    env, info, rollout = episode.env, episode.info, episode.rollout
    text, image = look(episode.observation)
    view = EpisodeView(text, text, info, env.max_turns, rollout.turns, image)
    try:
        over = False
        while not over:
            turn_seed = seed_of(seed, episode.group, episode.member, len(rollout.turns))
            over = await _take_turn(episode, actor, view, rollout, turn_seed)
            if not over and episode.stop_at is not None and len(rollout.turns) >= episode.stop_at:
                rollout.stop_reason, over = StopReason.STOPPED, True
    except EnvUnavailable as e:
        rollout.stop_reason, rollout.error = StopReason.ERROR, describe(e)
    except ContextOverflow:
        if not rollout.turns:
            raise
        rollout.stop_reason = StopReason.CONTEXT_LIMIT
    return rollout


async def _take_turn(
    episode: Episode, actor: Actor, view: EpisodeView, rollout: Rollout, seed: int
) -> bool:
    decision = await actor.act(view, seed)
    observation, reward, terminated, truncated, info = await episode.pool.call(
        lambda: episode.env.step(decision.action), blocking=episode.env.blocking
    )
    text, image = look(observation)
    turn = Turn(
        observation=view.observation,
        state_key=view.info["state_key"],
        completion=decision.completion,
        action=decision.action,
        action_key=info["action_key"],
        feedback=info["feedback"] if decision.valid else Feedback.MALFORMED.value,
        reward=float(reward),
        next_observation=text,
        next_state_key=info["state_key"],
        progress=info["progress"],
        image=view.image,
    )
    rollout.turns.append(turn)
    view.observation, view.image, view.info = text, image, info
    rollout.success, rollout.score = info["success"], info["score"]
    rollout.stop_reason = StopReason.TERMINATED if terminated else StopReason.TURN_LIMIT
    return terminated or truncated


def describe(error: Exception) -> str:
    """Return an error's class and message in one line."""
    return f"{type(error).__name__}: {error}"
