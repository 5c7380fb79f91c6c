"""One episode: an environment that was reset, played to its end by whoever decides."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agentgyms.core import Feedback, Observation, TextEnv
from agentgyms.errors import EnvUnavailable
from agentgyms.recording import make_header
from agentgyms.transcript import RecordedTurn, Recording
from harness.agent import Actor, Decision, EpisodeView
from harness.errors import ContextOverflow, ModelUnavailable
from harness.images import Image, look
from harness.rollout import Rollout, StopReason, Turn
from harness.sampling import TaskDraw, seed_of
from harness.seats import PARTNER, SEAT, SeatTurns, is_partners

if TYPE_CHECKING:
    from harness.collect import EnvPool

_PARTNERS: Final = 1
"""Stream of random numbers for the decisions of the partner's seat in self-chat."""

UNRATED: Final = "unrated"
"""Begins the error of an episode that ended without a score: nobody knows what it is worth."""


@dataclass(slots=True)
class Episode:
    """One episode about to be played: an environment that was reset, and what it answered.

    Attributes:
        rollout: What has been played of it.
        stop_at: It stops at this turn or as soon as it has passed it; None plays to the end.
        seen: The latest observation's text and image.
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
    seen: tuple[str, Image | None] = field(init=False)
    _seats: SeatTurns = field(init=False)
    _views: dict[bool, EpisodeView] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin the rollout."""
        self.seen = look(self.observation)
        self.rollout = Rollout(
            self.draw.task_id,
            self.info["family"],
            self.group,
            self.member,
            self.draw.seed,
            goal="" if is_partners(self.info) else self.info["goal"],
        )
        self._seats = SeatTurns(self.rollout.turns)
        if self.pool.record:
            options = {"task_id": self.draw.task_id}
            header = make_header(self.pool.env_id, self.env, self.draw.seed, options)
            first = RecordedTurn(0, "", self.observation, 0.0, False, False, self.info)
            self.rollout.recording = Recording(header, [first])

    def view(self) -> EpisodeView:
        """Return what the seat that acts next knows."""
        partner, (text, image), info = is_partners(self.info), self.seen, self.info
        view = self._views.get(partner)
        if view is None:
            turns = self._seats.of(partner)
            view = EpisodeView(text, text, info, self.env.max_turns, turns, image)
            self._views[partner] = view
            self.rollout.goal = self.rollout.goal if partner else info["goal"]
        view.observation, view.image, view.info = text, image, info
        return view

    def follow(self, observation: Observation, info: dict[str, Any]) -> None:
        """Go on to what a step answered."""
        self.observation, self.info, self.seen = observation, info, look(observation)

    def take(self, partner: bool, turn: Turn) -> None:
        """Add a turn that a seat took."""
        self._seats.take(partner, turn)


async def run_episode(
    episode: Episode, actor: Actor, *, seed: int, may_lose_at_once: bool = False
) -> Rollout:
    """Play one episode to its end.

    A failure of the environment's infrastructure, or of the model's, ends it with `error`, and so
    does an end without a score: an episode that its judge could not rate. A bad action never does.
    A prompt that outgrows the model's context ends it as lost. It is `STOPPED` at
    `episode.stop_at`.

    Where the actor plays its partner too, it decides for both seats, each by its own view; the
    rollout has the learner's turns. See `harness.seats`.

    Args:
        episode: Reset, with no turn taken.
        actor: Who decides.
        seed: All decisions' seeds derive from it, the group, the member and the turn.
        may_lose_at_once: An episode whose very first prompt does not fit is lost, without a turn,
            instead of raising: training has nothing to learn from it, evaluation has to count it.

    Raises:
        ContextOverflow: The very first prompt does not fit.
    """
    rollout = episode.rollout
    try:
        over = False
        while not over:
            over = await _take_turn(episode, actor, seed)
            if not over and episode.stop_at is not None and len(rollout.turns) >= episode.stop_at:
                rollout.stop_reason, over = StopReason.STOPPED, True
    except (EnvUnavailable, ModelUnavailable) as e:
        rollout.stop_reason, rollout.error = StopReason.ERROR, describe(e)
    except ContextOverflow:
        if not rollout.turns and not may_lose_at_once:
            raise
        rollout.stop_reason = StopReason.CONTEXT_LIMIT
        rollout.score = 0.0 if math.isnan(rollout.score) else rollout.score
    return rollout


async def _take_turn(episode: Episode, actor: Actor, seed: int) -> bool:
    """Take the next seat's turn, and return whether the episode is over."""
    before, partner = episode.info, is_partners(episode.info)
    view = episode.view()
    stream = (_PARTNERS,) if partner else ()
    turn_seed = seed_of(seed, episode.group, episode.member, len(view.turns), *stream)
    decision = await actor.act(view, turn_seed)
    observation, reward, terminated, truncated, info = await episode.pool.call(
        lambda: episode.env.step(decision.action),
        blocking=episode.env.blocking,
        interrupt=episode.env.interrupt,
    )
    recorded = RecordedTurn(
        info["turn"],
        decision.action,
        observation,
        float(reward),
        bool(terminated),
        bool(truncated),
        info,
        _said(decision) | ({SEAT: PARTNER} if partner else {}),
    )
    if episode.rollout.recording:
        episode.rollout.recording.turns.append(recorded)
    episode.follow(observation, info)
    turn = Turn(
        observation=view.observation,
        state_key=before["state_key"],
        completion=decision.completion,
        action=decision.action,
        action_key=info["action_key"],
        feedback=info["feedback"] if decision.valid else Feedback.MALFORMED.value,
        reward=recorded.reward,
        next_observation=episode.seen[0],
        next_state_key=info["state_key"],
        progress=info["progress"],
        image=view.image,
    )
    episode.take(partner, turn)
    return _come_out(episode.rollout, recorded)


def _come_out(rollout: Rollout, last: RecordedTurn) -> bool:
    """Write down what an episode came to with its latest turn, and return whether it is over."""
    rollout.success, rollout.score = last.info["success"], last.info["score"]
    rollout.metrics = dict(last.info["metrics"])
    rollout.stop_reason = StopReason.TERMINATED if last.terminated else StopReason.TURN_LIMIT
    over = last.terminated or last.truncated
    if over and (math.isnan(rollout.score) or math.isnan(last.reward)):
        why = last.info["feedback_text"] or "the episode ended without a score"
        rollout.stop_reason = StopReason.ERROR
        rollout.error = why if why.startswith(UNRATED) else f"{UNRATED}: {why}"
    return over


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
