"""Plays one episode with an actor, in an environment that was reset."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, SupportsFloat, TypeVar

from agentgyms.core import tracing
from agentgyms.core.env import Feedback, Observation, TextEnv
from agentgyms.core.errors import EnvUnavailable
from agentgyms.core.outcome import for_agents
from agentgyms.recording.recorder import make_header
from agentgyms.recording.recording_format import RecordedTurn, Recording
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.self_play import PARTNER, SEAT, SeatTurns, is_partners
from harness.rollouts.views import Actor, Decision, EpisodeView
from harness.types.errors import ContextOverflow, ModelUnavailable
from harness.types.messages import Image, text_and_image
from harness.types.rollout import Rollout, StopReason, Turn
from harness.types.task_draws import TaskDraw, seed_of

_T = TypeVar("_T")

_PARTNER_STREAM: Final = 1
"""Stream of random numbers for the decisions of the partner's seat in self-play."""

_STEP_SPAN: Final = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "step",
    "gen_ai.tool.type": "function",
}
"""Attributes of a step's tracing span."""

BRANCH: Final = "branch"
"""Field of the header of a sibling's recording: its `parent` and the `turn` it branched at."""

UNRATED: Final = "unrated"
"""Prefix of the error of an episode that ended without a score."""


class Point(NamedTuple):
    """An episode right before one of the learner's turns, to go on from later."""

    snapshot: bytes
    episode: Episode  # a copy; its environment has gone on
    recorded: int  # recorded turns, with the reset; 0 without a recording


@dataclass(slots=True)
class Episode:
    """One episode in progress: an environment that was reset, and its latest observation."""

    pool: EnvPool
    env: TextEnv
    draw: TaskDraw
    group: int
    member: int
    observation: Observation
    info: dict[str, Any]
    rollout: Rollout = field(init=False)
    stop_at: int | None = None  # the turn at which the episode is stopped; None: at its end
    points: list[Point] | None = None  # one for each turn, if siblings may branch; else None
    text_and_image: tuple[str, Image | None] = field(init=False)  # of the latest observation
    seats: SeatTurns = field(init=False)
    _views: dict[bool, EpisodeView] = field(default_factory=dict)  # by "is the partner's seat"

    def __post_init__(self) -> None:
        self.text_and_image = text_and_image(self.observation)
        self.rollout = Rollout(
            self.draw.task_id,
            self.info["family"],
            self.group,
            self.member,
            self.draw.seed,
            goal="" if is_partners(self.info) else self.info["goal"],
        )
        self.seats = SeatTurns(self.rollout.turns)
        if self.pool.record:
            options = {"task_id": self.draw.task_id} | self.env.episode_source[1]  # with redraws
            header = make_header(self.pool.env_id, self.env, self.draw.seed, options)
            first = RecordedTurn(0, "", self.observation, 0.0, False, False, self.info)
            self.rollout.recording = Recording(header, [first])

    def view(self) -> EpisodeView:
        """Return the view of the seat that acts next."""
        partner, (text, image) = is_partners(self.info), self.text_and_image
        info = for_agents(self.info)
        view = self._views.get(partner)
        if view is None:
            turns = self.seats.turns(partner)
            view = EpisodeView(text, text, info, self.env.max_turns, turns, image)
            self._views[partner] = view
            # A partner who begins hides the learner's goal until the learner's first turn.
            self.rollout.goal = self.rollout.goal if partner else info["goal"]
        view.observation, view.image, view.info = text, image, info
        return view

    def observe(self, observation: Observation, info: dict[str, Any]) -> None:
        """Set the latest observation and `info`."""
        self.observation, self.info = observation, info
        self.text_and_image = text_and_image(observation)

    async def call(self, work: Callable[[], _T]) -> _T:
        """Return `work()`, in a thread if the environment waits; see `EnvPool.call`."""
        env = self.env
        return await self.pool.call(work, blocking=env.blocking, interrupt=env.interrupt)

    def moved_to(self, env: TextEnv) -> Episode:
        """Return a copy of this episode on a fork of its environment, without a recording."""
        twin = copy.copy(self)
        twin.env, twin.points = env, None
        twin.rollout = replace(self.rollout, turns=[*self.rollout.turns], recording=None)
        twin.seats = self.seats.copied(twin.rollout.turns)
        twin._views = {
            partner: replace(view, turns=twin.seats.turns(partner), prompts=[*view.prompts])
            for partner, view in self._views.items()
        }
        return twin

    async def keep_point(self) -> None:
        """Keep the episode as it is now, if siblings may branch from it and the learner acts."""
        if self.points is None or is_partners(self.info):
            return
        snapshot = await self.call(self.env.snapshot)
        recorded = len(self.rollout.recording.turns) if self.rollout.recording else 0
        self.points.append(Point(snapshot, self.moved_to(self.env), recorded))


async def run_episode(
    episode: Episode, actor: Actor, *, seed: int, allow_initial_overflow: bool = False
) -> Rollout:
    """Play one episode to its end; no turn may be taken yet.

    The rollout gets an `error` if the environment or the model fails, or if the episode ends
    without a score because its judge could not rate it. A bad action is never an error. If a prompt
    no longer fits into the model's context, the episode is lost; if the first one does not fit,
    `ContextOverflow` is raised unless `allow_initial_overflow`: evaluation must count such an
    episode, training cannot learn from it. It is `STOPPED` at `episode.stop_at`. In self-play the
    actor decides for both seats. Decisions derive their seeds from `seed`, the group, the member
    and the turn.
    """
    with tracing.span(f"invoke_agent {type(actor).__name__}", _described(episode, actor)) as span:
        rollout = await _play(episode, actor, seed, allow_initial_overflow=allow_initial_overflow)
        span.set(
            {
                "agentgyms.turns": len(rollout.turns),
                "agentgyms.success": rollout.success,
                "agentgyms.score": rollout.score,
                "agentgyms.stop_reason": rollout.stop_reason.value,
            }
        )
        if rollout.error:
            span.fail(rollout.error.partition(":")[0])
        return rollout


def _described(episode: Episode, actor: Actor) -> dict[str, Any]:
    draw = episode.draw
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "agentgyms",
        "gen_ai.agent.name": type(actor).__name__,
        "gen_ai.conversation.id": f"{draw.task_id}/{draw.seed}/{episode.group}/{episode.member}",
        "agentgyms.env_id": episode.pool.env_id,
        "agentgyms.task_id": draw.task_id,
        "agentgyms.seed": draw.seed,
        "agentgyms.group": episode.group,
        "agentgyms.member": episode.member,
    }


async def _play(
    episode: Episode, actor: Actor, seed: int, *, allow_initial_overflow: bool
) -> Rollout:
    rollout = episode.rollout
    try:
        over = False
        while not over:
            with tracing.span("turn", {"agentgyms.turn": episode.info["turn"] + 1}):
                over = await take_turn(episode, actor, seed)
            if not over and episode.stop_at is not None and len(rollout.turns) >= episode.stop_at:
                rollout.stop_reason, over = StopReason.STOPPED, True
    except (EnvUnavailable, ModelUnavailable) as e:
        rollout.stop_reason, rollout.error = StopReason.ERROR, describe(e)
    except ContextOverflow:
        if not rollout.turns and not allow_initial_overflow:
            raise
        rollout.stop_reason = StopReason.CONTEXT_LIMIT
        rollout.score = 0.0 if math.isnan(rollout.score) else rollout.score
    return rollout


async def take_turn(episode: Episode, actor: Actor, seed: int) -> bool:
    """Play the next seat's turn, or raise its error; return whether the episode is over."""
    before, partner = episode.info, is_partners(episode.info)
    view = episode.view()
    await episode.keep_point()  # before the actor: siblings draw this turn's action anew
    stream = (_PARTNER_STREAM,) if partner else ()
    turn_seed = seed_of(seed, episode.group, episode.member, len(view.turns), *stream)
    decision = await actor.act(view, turn_seed)
    observation, reward, terminated, truncated, info = await _step(episode, decision.action)
    recorded = RecordedTurn(
        info["turn"],
        decision.action,
        observation,
        float(reward),
        bool(terminated),
        bool(truncated),
        info,
        _recorded_decision(decision) | ({SEAT: PARTNER} if partner else {}),
    )
    if episode.rollout.recording:
        episode.rollout.recording.turns.append(recorded)
    episode.observe(observation, info)
    turn = Turn(
        observation=view.observation,
        state_key=before["state_key"],
        completion=decision.completion,
        action=decision.action,
        action_key=info["action_key"],
        feedback=info["feedback"] if decision.valid else Feedback.MALFORMED.value,
        reward=recorded.reward,
        next_observation=episode.text_and_image[0],
        next_state_key=info["state_key"],
        progress=info["progress"],
        image=view.image,
        summary=decision.summary,
        atoms=before["atoms"],
        next_atoms=info["atoms"],
        oracle=before.get("oracle", ""),
        next_oracle=info.get("oracle", ""),
    )
    episode.seats.add(partner, turn)
    return _update_result(episode.rollout, recorded)


async def _step(
    episode: Episode, action: str
) -> tuple[Observation, SupportsFloat, bool, bool, dict[str, Any]]:
    with tracing.span("execute_tool step", _STEP_SPAN) as span:
        stepped = await episode.call(lambda: episode.env.step(action))
        span.set(
            {
                "agentgyms.reward": float(stepped[1]),
                "agentgyms.feedback": stepped[4]["feedback"],
                "agentgyms.state_key": stepped[4]["state_key"],
            }
        )
        return stepped


def _update_result(rollout: Rollout, last: RecordedTurn) -> bool:
    """Set success, score and stop reason from the latest turn; return whether the episode ended."""
    rollout.success, rollout.score = last.info["success"], last.info["score"]
    rollout.metrics = dict(last.info["metrics"])
    rollout.stop_reason = StopReason.TERMINATED if last.terminated else StopReason.TURN_LIMIT
    over = last.terminated or last.truncated
    if over and (math.isnan(rollout.score) or math.isnan(last.reward)):
        why = last.info["feedback_text"] or "the episode ended without a score"
        rollout.stop_reason = StopReason.ERROR
        rollout.error = why if why.startswith(UNRATED) else f"{UNRATED}: {why}"
    return over


def _recorded_decision(decision: Decision) -> dict[str, Any]:
    completion, summary = decision.completion, decision.summary
    recorded: dict[str, Any] = {
        "prompt": decision.prompt,
        "left_out": decision.left_out,
        "answer": completion.text,
        "valid": decision.valid,
        "finished": completion.finished,
        "tokens": [completion.usage.prompt, completion.usage.response],
    }
    if completion.thought_tokens is not None or completion.cut_thought:
        recorded["thought"] = [completion.thought_tokens, completion.cut_thought]
    if summary is not None:
        tokens = [summary.usage.prompt, summary.usage.response]
        recorded["summary"] = {"answer": summary.text, "tokens": tokens}
    return recorded


def describe(error: Exception) -> str:
    """Return an error's class and message in one line."""
    return f"{type(error).__name__}: {error}"
