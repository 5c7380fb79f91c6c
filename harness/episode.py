"""One episode: an environment that was reset, played to its end by whoever decides."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agentgyms.core import Feedback, Observation, TextEnv
from agentgyms.errors import EnvUnavailable
from agentgyms.recording import make_header
from agentgyms.transcript import RecordedTurn, Recording
from harness.agent import Actor, Decision, EpisodeView
from harness.errors import ContextOverflow, ModelUnavailable
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
        if self.pool.record:
            options = {"task_id": self.draw.task_id}
            header = make_header(self.pool.env_id, self.env, self.draw.seed, options)
            first = RecordedTurn(0, "", self.observation, 0.0, False, False, self.info)
            self.rollout.recording = Recording(header, [first])


async def run_episode(
    episode: Episode, actor: Actor, *, seed: int, may_lose_at_once: bool = False
) -> Rollout:
    """Play one episode to its end.

    A failure of the environment's infrastructure, or of the model's, ends it with `error`; a bad
    action never does. A prompt that outgrows the model's context ends it as lost. It is `STOPPED`
    at `episode.stop_at`.

    Args:
        episode: Reset, with no turn taken.
        actor: Who decides.
        seed: All decisions' seeds derive from it, the group, the member and the turn.
        may_lose_at_once: An episode whose very first prompt does not fit is lost, without a turn,
            instead of raising: training has nothing to learn from it, evaluation has to count it.

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
    except (EnvUnavailable, ModelUnavailable) as e:
        rollout.stop_reason, rollout.error = StopReason.ERROR, describe(e)
    except ContextOverflow:
        if not rollout.turns and not may_lose_at_once:
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
    if rollout.recording:
        said = _said(decision)
        rollout.recording.turns.append(
            RecordedTurn(
                info["turn"],
                decision.action,
                observation,
                float(reward),
                terminated,
                truncated,
                info,
                said,
            )
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


def _said(decision: Decision) -> dict[str, Any]:
    """Return what a recording keeps of a decision: what was asked, and what was answered."""
    completion = decision.completion
    return {
        "prompt": decision.prompt,
        "left_out": decision.left_out,
        "answer": completion.text,
        "valid": decision.valid,
        "finished": completion.finished,
        "tokens": [completion.usage.prompt, completion.usage.response],
    }


def describe(error: Exception) -> str:
    """Return an error's class and message in one line."""
    return f"{type(error).__name__}: {error}"
