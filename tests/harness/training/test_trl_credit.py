"""TRL trains a tiny Qwen with this harness's credit, and what a turn of its episodes is."""

import json
import os
import subprocess
import sysconfig
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from agentgyms.recording.recording_format import RecordedTurn, Recording
from harness import credit
from harness.credit import TurnTable
from harness.training.trl_rollouts import from_tool_calls

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PYTHON = os.environ.get("AGENTGYMS_ADAPTERS_PYTHON", "")
PACKAGES = os.pathsep.join([str(ROOT), sysconfig.get_path("purelib")])
"""Ours, and what is only here, PyTorch above all."""
METHODS = ("gigpo", "scpo", "graphgpo")


def recorded(seed, calls, **kwargs):
    """Return an episode of ALFWorld: of each turn the number of its answer, and the action."""
    env = gym.make("agentgyms/ALFWorld-v0", **kwargs)
    observation, info = env.reset(seed=seed)
    turns = [RecordedTurn(0, "", observation, 0.0, False, False, info)]
    for answer, action in calls:
        observation, reward, terminated, truncated, info = env.step(action)
        ends = (reward, terminated, truncated)
        told = {"answer": answer}
        turns.append(RecordedTurn(info["turn"], action, observation, *ends, info, told))
    return Recording({"seed": seed}, turns)


def test_an_answers_calls_are_one_turn_and_an_answer_without_one_is_malformed():
    recording = recorded(0, [(0, "look"), (0, "inventory"), (2, "take moon 1 from shelf 9")])
    rollout = from_tool_calls(recording, 4)
    states = [turn.info["state_key"] for turn in recording.turns]
    assert [turn.action for turn in rollout.turns] == [
        "look\ninventory",
        "",
        "take moon 1 from shelf 9",
        "",
    ]
    feedback = ["ok", "malformed", "inadmissible", "malformed"]
    assert [turn.feedback for turn in rollout.turns] == feedback
    assert [turn.state_key for turn in rollout.turns] == [states[0], *states[2:], states[3]]
    assert [turn.next_state_key for turn in rollout.turns] == [*states[2:3] * 2, *states[3:] * 2]


def test_answers_after_the_end_are_no_turns():
    recording = recorded(0, [(0, "look"), (1, "look")], max_turns=2)
    assert len(from_tool_calls(recording, 5).turns) == 2


def table_of(run, size, **kwargs):
    """Return the table of a batch's episodes, played again here, and each token's row in it."""
    columns, rows = [], np.full(np.shape(run["sampled"]), -1)
    for place, (seed, calls) in enumerate(zip(run["seeds"], run["played"], strict=True)):
        recording = recorded(seed, calls, **kwargs)
        over = recording.turns[-1].terminated or recording.turns[-1].truncated
        last = recording.turns[-1].agent["answer"] if len(recording.turns) > 1 else -1
        at, number = -1, -1
        before = recording.turns[0]
        sampled = run["sampled"][place]
        for token, is_sampled in enumerate(sampled):
            if is_sampled and not (token and sampled[token - 1]):
                number += 1
                if over and number > last:
                    at = -1
                    continue
                made = [turn for turn in recording.turns[1:] if turn.agent["answer"] == number]
                after = made[-1] if made else before
                faults = [t.info["feedback"] for t in made if t.info["feedback"] != "ok"]
                feedback = (faults or ["ok"])[0] if made else "malformed"
                at = len(columns)
                columns.append(
                    {
                        "rollout": place,
                        "group": place // size,
                        "reward": sum(turn.reward for turn in made),
                        "success": recording.turns[-1].info["success"],
                        "valid": feedback not in ("malformed", "inadmissible"),
                        "failed": feedback in ("failed", "malformed"),
                        "state_key": before.info["state_key"],
                        "next_state_key": after.info["state_key"],
                        "action_key": "\n".join(turn.info["action_key"] for turn in made),
                        "text": f"{chr(10).join(t.action for t in made)} || {after.observation}",
                    }
                )
                before = after
            if is_sampled:
                rows[place, token] = at
    names = columns[0]
    return TurnTable.from_columns(**{k: [one[k] for one in columns] for k in names}), rows


def by_trl(script, *arguments, asked=""):
    """Return what a script of this folder says in the Python that has TRL."""
    done = subprocess.run(
        [PYTHON, str(HERE / script), *map(str, arguments)],
        input=asked,
        env={**os.environ, "PYTHONPATH": PACKAGES, "TRL_EXPERIMENTAL_SILENCE": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.adapters
def test_the_example_learns_from_a_model_that_already_acts(tmp_path):
    """The bar is three deviations below what six seeds rose by: 39 points, deviation 6."""
    (run,) = by_trl("trl_curves.py", tmp_path, 1)
    solved = run["reward"]
    assert len(solved) == 8
    before, after = np.mean(solved[:2]), np.mean(solved[-2:])
    assert 0 < before < 0.8, solved
    assert after - before >= 0.2, solved
    assert run["grad_norm"][0] > 0


@pytest.mark.adapters
def test_trl_trains_on_the_advantages_that_the_estimators_give(tmp_path):
    """The same batch, played again here: equal in every token, to the last bit of float32."""
    asked = [{"credit": name, "hyperparameters": {}, "steps": 1} for name in METHODS]
    told = by_trl("trl_peer.py", tmp_path, asked=json.dumps(asked))
    assert told["example"]["step"] == 1
    assert all(written == made and len(made) > 3 for written, made in told["shown"])
    runs = told["runs"]
    for name, run in zip(METHODS, runs, strict=True):
        table, rows = table_of(run, 4, split="train", max_turns=10)
        advantage = credit.get(name)(table).astype(np.float32)
        wanted = np.where(rows >= 0, np.append(advantage, np.float32(0))[rows], np.float32(0))
        assert (np.array(run["advantages"], np.float32) == wanted).all()
        assert {0.0, 1.0} == set(run["rewards"])
        assert len(np.unique(advantage)) > 2
        assert not table.valid.all()
        assert run["moved"] > 0
    assert len({str(run["played"]) for run in runs}) == 1  # one batch, credited in three ways
    assert len({str(run["advantages"]) for run in runs}) == len(METHODS)
