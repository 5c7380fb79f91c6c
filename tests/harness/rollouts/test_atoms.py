"""Atoms of the goal on their way from the environment to the turn table, and hidden from agents."""

import asyncio
import json
import math

import numpy as np
import pytest
from function_actor import FunctionActor

from agentgyms.core.errors import DataCorrupt, ReplayMismatch
from agentgyms.envs.corridor import CorridorEnv
from agentgyms.recording import replay
from harness import prompts
from harness.credit import TurnTable
from harness.credit.atoms import earned, shares
from harness.inference.completers import Sampling
from harness.inference.completers.scripted import ScriptedCompleter
from harness.rollouts import rollout_files
from harness.rollouts.agent import Agent
from harness.rollouts.collect import collect
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.from_recordings import rollout_of
from harness.rollouts.groups import CollectOptions
from harness.types.errors import TableError
from harness.types.task_draws import TaskDraw

CORRIDOR = "agentgyms/Corridor-v0"
LOCKED = "train/locked-001"
CANARY = "canary-8e7b1f0d"


@pytest.fixture
def planted(monkeypatch):
    """Corridors whose atoms have a name that nothing else has."""
    outcome_of = CorridorEnv._outcome
    told = lambda *args, **kwargs: outcome_of(*args, **kwargs)._replace(atoms={CANARY: False})
    monkeypatch.setattr(CorridorEnv, "_outcome", told)


def play(actor, **pool):
    draws = [TaskDraw(LOCKED, 3)]
    played = EnvPool(CORRIDOR, 2, 2, **pool)
    return asyncio.run(collect(played, draws, actor, seed=1, options=CollectOptions(pause_s=0)))


def test_an_agent_that_prints_all_that_it_sees_finds_no_atoms(planted):
    printed = []

    def choose(view, seed):
        printed.append(repr(view))
        return "right"

    rollouts = play(FunctionActor(choose))
    assert len(printed) > 10
    assert not any(CANARY in text for text in printed)
    assert all(turn.next_atoms == {CANARY: False} for one in rollouts for turn in one.turns)


@pytest.mark.parametrize("style", ["chat", "compact", "direct", "think", "tools"])
def test_no_prompt_tells_atoms(planted, style):
    read = []

    def answer(messages):
        read.append(repr(messages))
        return "left"

    agent = Agent(ScriptedCompleter(answer), prompts.load(style, CORRIDOR), Sampling(), 2)
    (rollout, _) = play(agent, record=True)
    assert len(read) > 10
    assert not any(CANARY in text for text in read)
    said = repr([turn.agent for turn in rollout.recording.turns])
    assert CANARY not in said
    assert rollout.recording.turns[0].info["atoms"] == {CANARY: False}


def expert(view, seed):
    return json.loads(view.info["oracle"])["best"]


def test_atoms_are_in_the_turn_table_in_files_and_in_recordings(tmp_path):
    rollouts = play(FunctionActor(expert), oracle=True, record=True)
    table = TurnTable.from_rollouts(rollouts)
    _, after, known = shares(table)
    progress = np.array([turn.progress for one in rollouts for turn in one.turns])
    np.testing.assert_allclose(after, progress)
    assert known.all()
    assert (after[~table.goes_on] == 1.0).all()
    assert table.atoms[0] == {"key": False, "door": False}
    assert table.next_atoms[-1] == {"key": True, "door": True}
    rollout_files.write(tmp_path / "rollouts.jsonl", rollouts, {})
    again = TurnTable.from_rollouts(rollout_files.read(tmp_path / "rollouts.jsonl").rollouts)
    assert again.next_atoms.tolist() == table.next_atoms.tolist()
    assert again.atoms.tolist() == table.atoms.tolist()
    replayed = [rollout_of(one.recording) for one in rollouts]
    recorded = TurnTable.from_rollouts([*replayed[:1]])
    assert recorded.next_atoms.tolist() == table.next_atoms[: len(recorded)].tolist()


def test_a_replay_verifies_atoms(tmp_path, monkeypatch):
    (rollout, _) = play(FunctionActor(expert), oracle=True, record=True)
    assert replay(rollout.recording) == len(rollout.recording.turns)
    rollout.recording.turns[1].info["atoms"] = {"key": False, "door": True}
    with pytest.raises(ReplayMismatch, match="atoms"):
        replay(rollout.recording)


def table_of(before, *after):
    n = len(after)
    atoms = [before, *after[:-1]]
    return TurnTable.from_columns(
        rollout=[0] * n, reward=[0.0] * n, atoms=atoms, next_atoms=list(after)
    )


def test_shares_by_hand():
    """Turns that know nothing have the share of the turn before."""
    table = table_of({"a": True, "b": 0.5}, {"a": True, "b": 1.0}, {}, {"a": False, "b": 1.0})
    before, after, known = shares(table)
    assert before.tolist() == [0.75, 1.0, 1.0]
    assert after.tolist() == [1.0, 1.0, 0.5]
    assert known.tolist() == [True, False, True]
    before, after = earned(table)  # of b alone, from a half
    assert before.tolist() == [0.0, 1.0, 1.0]
    assert after.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("wrong", [{"a": 2.0}, {"a": math.nan}, {3: True}, "clean", None])
def test_a_column_that_holds_no_atoms_is_refused(wrong):
    with pytest.raises(TableError, match="column 'next_atoms' must hold mappings"):
        TurnTable.from_columns(rollout=[0], reward=[0.0], next_atoms=[wrong])


@pytest.mark.parametrize("wrong", ['{"a": 2}', '{"a": "yes"}', "[]", "null"])
def test_a_file_with_wrong_atoms_is_refused(tmp_path, wrong):
    line = f'{{"task_id": "t", "turns": [{{"action": "a", "reward": 0, "next_atoms": {wrong}}}]}}'
    (tmp_path / "rollouts.jsonl").write_text(line)
    with pytest.raises(DataCorrupt, match="next_atoms"):
        rollout_files.read(tmp_path / "rollouts.jsonl")


def test_an_environment_without_atoms_leaves_the_column_out():
    rollouts = play(FunctionActor(lambda view, seed: "left"))
    for one in rollouts:
        one.turns[:] = [type(turn)(*_first_fields(turn)) for turn in one.turns]
    assert TurnTable.from_rollouts(rollouts).next_atoms is None


def _first_fields(turn):
    names = ("observation", "state_key", "completion", "action", "action_key", "feedback")
    names += ("reward", "next_observation", "next_state_key", "progress")
    return [getattr(turn, name) for name in names]
