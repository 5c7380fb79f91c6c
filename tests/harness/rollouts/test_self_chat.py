"""Self-chat: one agent plays both seats, each by its own view; and episodes that nobody rates."""

import asyncio
import json
import math
from dataclasses import replace

import evaluation_helpers
import pytest
from chat_server import ChatServer
from dialogue_env import MEETING
from evaluation_helpers import result, served
from hypothesis import given
from hypothesis import strategies as st

from agentgyms.core.errors import DataCorrupt
from agentgyms.recording import recording_format
from agentgyms.registration import GroupEnv
from harness import prompts
from harness.evaluation import episodes
from harness.evaluation.evaluate import evaluate
from harness.inference.completers import Sampling
from harness.inference.completers.scripted import ScriptedCompleter
from harness.prompts.truncation import Preamble
from harness.reporting import run_and_report
from harness.rollouts.agent import Agent
from harness.rollouts.collect import collect
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.episode import Episode, run_episode
from harness.rollouts.from_recordings import from_recordings
from harness.rollouts.groups import CollectOptions
from harness.rollouts.self_play import goal_of
from harness.rollouts.views import Decision
from harness.types.errors import EvaluationStopped
from harness.types.rollout import Completion, StopReason
from harness.types.task_draws import TaskDraw, seed_of

SEATS = pytest.mark.parametrize("seat", [0, 1])


class Telling:
    """Says what a function of seat, turn of the seat and group member gives; keeps what it saw."""

    def __init__(self, numbers):
        self.numbers, self.views, self.task_id = numbers, [], ""

    async def act(self, view, seed):
        seat = int(view.info["goal"][5])
        self.task_id = view.info["task_id"]
        self.views.append((seat, view.observation, len(view.turns), seed))
        said = self.numbers(seat, len(view.turns))
        return Decision(str(said), Completion(f"<{said}>"), prompt=view.observation)


def play(actor, seat=0, *, group_size=1, retries=0, **kwargs):
    pool = EnvPool(MEETING, group_size, 8, record=True, **kwargs)
    draws = [TaskDraw(f"train-0/{seat}", 5)]
    rollouts = asyncio.run(
        collect(pool, draws, actor, seed=1, options=CollectOptions(retries=retries, pause_s=0))
    )
    pool.close()
    return rollouts


def steady(seat, turn):
    return 5 + seat + turn


@SEATS
def test_each_seat_sees_its_own_turns_and_what_was_said_between(seat):
    actor = Telling(steady)
    (rollout,) = play(actor, seat)
    assert [(s, n) for s, _, n, _ in actor.views] == [(i % 2, i // 2) for i in range(6)]
    assert actor.views[0][1] == "You are seat 0.\n"
    assert actor.views[1][1] == "You are seat 1.\nTurn #0: 5"
    assert actor.views[2][1] == "Turn #0: 5\nTurn #1: 6"
    assert len({seed for *_, seed in actor.views}) == 6
    own = [seed for s, _, _, seed in actor.views if s == seat]
    assert own == [seed_of(1, 0, 0, turn) for turn in range(3)], "as without a second seat"
    assert rollout.goal == f"seat {seat}: say more than the other one"
    assert [turn.action for turn in rollout.turns] == [str(steady(seat, n)) for n in range(3)]


@SEATS
def test_what_came_of_a_turn_is_what_there_was_at_the_seats_next_one(seat):
    (rollout,) = play(Telling(steady), seat)
    for turn, after in zip(rollout.turns, rollout.turns[1:], strict=False):
        assert turn.next_observation == after.observation
        assert turn.next_state_key == after.state_key
    own, other = (sum(steady(s, n) for n in range(3)) for s in (seat, 1 - seat))
    assert rollout.score == own / (own + other)
    rewards = [turn.reward for turn in rollout.turns]
    assert rewards[:2] == [0.125, 0.125], "each brought the partner's turn"
    assert rewards[2] == rollout.score + 0.125 * (seat == 0), "and the last one the score"
    assert rollout.success == (seat == 1)


@SEATS
def test_a_partner_of_its_own_makes_the_same_rollout(seat):
    """Played by the environment or by the caller, the partner is part of the world."""
    both = play(Telling(lambda s, n: 9 if s == seat else 1), seat)[0]
    alone = play(Telling(lambda s, n: 9), seat, alone=True)[0]
    for turn, single in zip(both.turns, alone.turns, strict=True):
        assert (turn.observation, turn.action) == (single.observation, single.action)
        assert turn.next_observation == single.next_observation
    assert (both.score, both.success, both.goal) == (alone.score, alone.success, alone.goal)


@SEATS
def test_recordings_hold_all_turns_and_tell_whose_they_are(seat):
    (rollout,) = play(Telling(steady), seat)
    recording = rollout.recording
    assert recording.header["parties"] == {"partner": "self", "judge": "counter-1"}
    said = [turn.agent.get("seat", "own") for turn in recording.turns[1:]]
    assert said == (["own", "partner"] if seat == 0 else ["partner", "own"]) * 3
    assert goal_of(recording) == rollout.goal
    lines = [json.dumps(recording.header), *map(recording_format.turn_line, recording.turns)]
    (again,) = from_recordings(recording_format.parse(lines, "x"), "x")
    keep = ("observation", "action", "reward", "next_observation", "state_key", "next_state_key")
    assert [[getattr(turn, name) for name in keep] for turn in again.turns] == [
        [getattr(turn, name) for name in keep] for turn in rollout.turns
    ]
    assert (again.goal, again.score) == (rollout.goal, rollout.score)


@pytest.mark.parametrize("context", ["window", "transcript"])
def test_transcripts_and_windows_hold_the_seats_own_words_alone(context):
    asked = []

    def script(messages):
        asked.append(messages)
        return f"<action>{len(asked)}</action>"

    style = prompts.load("direct", MEETING)
    agent = Agent(ScriptedCompleter(script), style, Sampling(), 2, context)
    (rollout,) = play(agent, 1)
    assert [turn.action for turn in rollout.turns] == ["2", "4", "6"]
    last = asked[-1]
    if context == "transcript":
        assert [m["content"] for m in last if m["role"] == "assistant"] == [
            "<action>2</action>",
            "<action>4</action>",
        ]
        assert [asked[1][0], asked[3][2]] == [last[0], last[2]]
    else:
        assert "[turn 1] Done: 2" in last[0]["content"]
        assert "[turn 2] Done: 4" in last[0]["content"]
        assert "Done: 3" not in last[0]["content"]
    assert "seat 1: say" in last[0]["content"]
    assert "seat 0: say" not in str(last)


@pytest.mark.parametrize("context", ["window", "transcript"])
def test_reflections_are_the_learners_alone(context):
    asked = {0: [], 1: []}

    def script(messages):
        text = str(messages)
        asked["seat 1: say" in text].append(text)
        return "<action>1</action>"

    notes = Preamble(MEETING, ("An example.",), ("The other one says five.",))
    style = prompts.load("direct", MEETING)
    agent = Agent(
        ScriptedCompleter(script), style, Sampling(), 2, context, preamble=notes, max_prompt=9000
    )
    play(agent, 1)
    assert [len(seen) for seen in asked.values()] == [3, 3]
    assert all("says five" in text for text in asked[1])
    assert not any("says five" in text for text in asked[0])
    assert all("An example." in text for seen in asked.values() for text in seen)


def test_members_of_a_group_differ_in_their_seeds_at_both_seats():
    actor = Telling(steady)
    play(actor, group_size=3)
    assert len({seed for *_, seed in actor.views}) == 18


@given(st.lists(st.sampled_from(["0", "3", "leave", "nonsense"]), min_size=8, max_size=8))
def test_rewards_are_those_of_the_recording_whoever_ends_it(said):
    """Sums of rewards are kept, but for what came before the learner's first turn."""
    words = iter([*said, *["4"] * 12])
    rollouts = play(Telling(lambda seat, turn: next(words)), 0)
    (rollout,) = rollouts
    assert not rollout.error
    total = math.fsum(turn.reward for turn in rollout.recording.turns)
    assert math.fsum(turn.reward for turn in rollout.turns) == pytest.approx(total)
    malformed = sum(turn.feedback == "malformed" for turn in rollout.turns)
    own = [t for t in rollout.recording.turns[1:] if t.agent.get("seat") is None]
    assert malformed == sum(t.info["feedback"] == "malformed" for t in own)


def test_the_partners_goal_is_never_told_as_the_learners():
    (rollout,) = play(Telling(steady), 1)
    first = rollout.recording.turns[:1]
    assert first[0].info["goal"].startswith("seat 0")
    assert goal_of(replace(rollout.recording, turns=first)) == ""


def test_a_partner_who_leaves_at_once_leaves_the_learner_without_a_turn():
    (rollout,) = play(Telling(lambda seat, turn: "leave"), 1)
    assert (rollout.turns, rollout.error) == ([], "")
    assert rollout.stop_reason is StopReason.TERMINATED


def test_an_unrated_episode_is_an_error_and_the_group_is_played_again():
    attempts = []

    def numbers(seat, turn):
        attempts.append(turn)
        return "unrated" if len(attempts) == 4 else 7

    (rollout,) = play(Telling(numbers))
    assert rollout.error == "unrated: the episode ended without a score"
    assert rollout.stop_reason is StopReason.ERROR
    attempts.clear()
    rollouts = play(Telling(numbers), group_size=2, retries=1)
    assert [one.error for one in rollouts] == ["", ""], "the whole group was played again"
    assert all(one.score == 0.5 for one in rollouts)
    (lost,) = play(Telling(lambda seat, turn: "unrated"), group_size=2, retries=1)
    assert lost.error.startswith("unrated")
    assert lost.turns == []


def test_evaluations_of_training_leave_unrated_episodes_out(at_once):
    pool = EnvPool(MEETING, 1, 8)
    actor = Telling(lambda seat, turn: "unrated" if actor.task_id == "train-0/1" else 7)
    tasks = ["train-0/0", "train-0/1", "train-1/0"]
    found = asyncio.run(evaluate(pool, tasks, "train", actor, seed=0))
    pool.close()
    assert (found.missing, found.score, found.success.count) == (1, 0.5, 2)
    assert all(math.isfinite(value) for value in found.metrics().values())
    assert found.parties == {"partner": "self", "judge": "counter-1"}


def test_an_evaluation_asks_nobody_who_had_a_part_once_it_is_over(at_once, monkeypatch):
    """A server that is gone by then loses no episode that was played."""
    pool = EnvPool(MEETING, 1, 8)
    made = iter([GroupEnv] * 3)
    monkeypatch.setattr("harness.rollouts.env_pool.GroupEnv", lambda *a, **b: next(made)(*a, **b))
    actor = Telling(lambda seat, turn: "unrated")
    found = asyncio.run(evaluate(pool, ["train-0/0"], "train", actor, seed=0))
    pool.close()
    assert found.missing == 1
    assert found.parties == {"partner": "self", "judge": "counter-1"}


class TestEvaluation:
    """`harness eval` on the meeting, with a model behind a server."""

    @pytest.fixture
    def server(self):
        self.says = {0: "9", 1: "9"}

        def answers(messages):
            text = evaluation_helpers.last_message(messages)
            if "<action>" not in text:
                self.says = dict.fromkeys(self.says, self.after)
                return "Say nine."
            return evaluation_helpers.think_answer(self.says["seat 1: say" in text])

        with ChatServer(answers) as server:
            yield server

    def test_what_is_unrated_is_missing_until_a_resume_plays_it(self, tmp_path, server, at_once):
        self.says[1] = "unrated"
        made = served(
            tmp_path, server, env__id=MEETING, env__split="valid", env__kwargs={"alone": True}
        )
        folder = run_and_report.run(made)
        result_json = result(folder)
        assert (result_json["partner"], result_json["judge"]) == ("echo-1", "counter-1")
        assert result_json["episodes"] == {"planned": 4, "finished": 2, "missing": 2}
        assert {one["error"] for one in result_json["missing"]} == {
            "unrated: the episode ended without a score"
        }
        assert result_json["figures"]["score"]["mean"] == 0.9
        self.says[1] = "9"
        run_and_report.resume(folder)
        result_json = result(folder)
        assert result_json["episodes"] == {"planned": 4, "finished": 4, "missing": 0}
        assert result_json["figures"]["score"]["count"] == 4

    def test_an_unrated_trial_of_reflexion_is_no_failed_one(self, tmp_path, server, at_once):
        self.says, self.after = {0: "0", 1: "1"}, "unrated"
        made = served(
            tmp_path,
            server,
            env__id=MEETING,
            env__split="valid",
            env__kwargs={"alone": True},
            agent__kind="reflexion",
            run__tasks=1,
        )
        with pytest.raises(EvaluationStopped, match="not one episode could be finished"):
            run_and_report.run(made)
        result_json = json.loads((next(tmp_path.iterdir()) / "provenance.json").read_text())
        assert result_json["sessions"][0]["finished"] == 0

    def test_figures_are_the_learners_and_tokens_are_both_seats(self, tmp_path, server):
        made = served(tmp_path, server, env__id=MEETING, env__split="valid")
        result_json = result(run_and_report.run(made))["figures"]
        assert result_json["score"]["mean"] == 0.5
        assert result_json["turns"] == 3
        assert result_json["tokens"]["calls"] == 4 * 6
        spent = result_json["parties"]["tokens"]
        assert spent == {"prompt": 120, "response": 16, "calls": 8}


def test_a_recording_without_a_score_is_refused_unless_the_agents_context_ended():
    rollout = asyncio.run(lost_of(Telling(lambda seat, turn: "unrated")))
    about = {"index": 0, "seed": 0, "trial": 1}
    episodes.describe_episode(rollout.recording, stop_reason=StopReason.TERMINATED, **about)
    with pytest.raises(DataCorrupt, match="nobody rated it"):
        episodes.episode_record(rollout.recording)
    episodes.describe_episode(rollout.recording, stop_reason=StopReason.CONTEXT_LIMIT, **about)
    assert episodes.episode_record(rollout.recording).score == 0.0


async def lost_of(actor):
    """Return an episode as it is before collection drops it."""
    pool = EnvPool(MEETING, 1, 8, record=True)
    group = pool.take()
    (env,) = group.envs
    draw = TaskDraw("train-0/0", 5)
    observation, info = env.reset(seed=5, options={"task_id": draw.task_id})
    return await run_episode(Episode(pool, env, draw, 0, 0, observation, info), actor, seed=1)
