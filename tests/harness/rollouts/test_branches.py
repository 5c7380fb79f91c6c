"""Branches: siblings share turns with the rollout they branch from, and repeat by their seeds."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from agentgyms.recording import replay
from agentgyms.serving.server import Server
from env_servers import create_app
from harness import prompts
from harness.config.rollout_settings import BranchConfig
from harness.credit import TurnTable
from harness.credit.trees import tree_of
from harness.inference.completers import Sampling
from harness.model.packing import samples
from harness.rollouts import rollout_files
from harness.rollouts.agent import Agent
from harness.rollouts.branches import Branches, cost
from harness.rollouts.collect import collect
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.from_recordings import from_recordings
from harness.rollouts.groups import CollectOptions
from harness.types.errors import ConfigError, ModelUnavailable, TableError
from harness.types.rollout import Completion, Usage
from harness.types.task_draws import TaskDraw

ACTIONS = ("right", "right", "left", "take key", "open door")


class Dice:
    """A completer that draws an action by its seed, and fails at some of its calls."""

    def __init__(self, fails=()):
        self.calls, self.fails = 0, fails

    async def complete(self, messages, sampling, seed):
        self.calls += 1
        if self.calls in self.fails:
            raise ModelUnavailable("the model is gone")
        rng = np.random.default_rng(seed)
        action = ACTIONS[rng.integers(len(ACTIONS))]
        said = f"<think>so</think><action>{action}</action>"
        return Completion(said, (1, 2), (3,), (-float(rng.random()),), usage=Usage(3, 2, 1))


def played(settings, model=None, *, context="window", record=False, members=3, **kwargs):
    """Return the rollouts of two groups."""
    env_id = kwargs.pop("env_id", "agentgyms/Corridor-v0")
    pool = EnvPool(env_id, members, 2 * members, record=record, max_turns=7, **kwargs)
    draws = [TaskDraw(task, 7) for task in list(pool.tasks())[:2]]
    agent = Agent(model or Dice(), prompts.load("think", env_id), Sampling(), 2, context)
    branch = Branches(BranchConfig(**settings), seed=3) if settings else None
    options = CollectOptions(branch=branch, pause_s=0)
    rollouts = asyncio.run(collect(pool, draws, agent, seed=5, options=options))
    pool.close()
    return rollouts


def siblings(rollouts):
    return [rollout for rollout in rollouts if rollout.parent is not None]


def by_member(rollouts):
    return {(rollout.group, rollout.member): rollout for rollout in rollouts}


@pytest.mark.parametrize("context", ["window", "transcript"])
@pytest.mark.parametrize("at", ["every", "uniform", "entropy"])
def test_siblings_share_their_first_turns_and_go_on_with_decisions_of_their_own(at, context):
    settings = {"at": at, "every": 2, "points": 4, "siblings": 2}
    rollouts = played(settings, context=context)
    plain = played(None, context=context)
    assert [r for r in rollouts if r.parent is None] == plain
    found, known = siblings(rollouts), by_member(rollouts)
    assert len(known) == len(rollouts) == 6 + 2 * 4 * 2
    for one in found:
        parent = known[one.group, one.parent]
        assert one.member >= 3 > parent.member
        assert 0 < one.branch_turn < len(parent.turns)
        assert one.turns[: one.branch_turn] == parent.turns[: one.branch_turn]
        begins, before = one.own_turns[0], parent.turns[one.branch_turn]
        assert begins.state_key == before.state_key
        assert begins.observation == before.observation
        assert one.turns[-1].next_state_key
        assert len(one.turns) <= 7
    assert any(one.turns != known[one.group, one.parent].turns for one in found)
    assert played(settings, context=context) == rollouts


def test_the_turns_are_those_that_the_settings_choose():
    every = siblings(played({"at": "every", "every": 3, "points": 9}))
    assert {one.branch_turn for one in every} == {3, 6}
    rollouts = played({"at": "entropy", "points": 2})
    for group in (0, 1):
        members = [r for r in rollouts if r.group == group and r.parent is None]
        least = sorted(
            (turn.completion.logprobs[0], r.member, t)
            for r in members
            for t, turn in enumerate(r.turns)
            if t
        )
        taken = [(r.parent, r.branch_turn) for r in siblings(rollouts) if r.group == group]
        assert taken == [(member, turn) for _, member, turn in least[:2]]
    one, other = (Branches(BranchConfig(at="uniform"), seed).choose(members, 0) for seed in (1, 2))
    assert one != other


def test_divergent_turns_are_states_where_a_lucky_action_looks_best():
    """An action taken once has a higher return than all that were taken more often (Figure 1)."""
    rollouts = played({"at": "divergent", "points": 9}, members=12)
    wanted = set()
    for group in (0, 1):
        states = {}
        for one in (r for r in rollouts if r.group == group and r.parent is None):
            value = 0.0
            for t, turn in reversed(list(enumerate(one.turns))):
                invalid = turn.feedback in ("malformed", "inadmissible")
                value = turn.reward + 0.95 * value
                action, returned = ("", value - 0.1) if invalid else (turn.action_key, value)
                states.setdefault(turn.state_key, []).append((action, returned, one.member, t))
        for visits in states.values():
            returns = {action: [v for a, v, *_ in visits if a == action] for action, *_ in visits}
            once = [v for values in returns.values() if len(values) == 1 for v in values]
            often = [np.mean(values) for values in returns.values() if len(values) > 1]
            later = sorted((member, t) for *_, member, t in visits if t)
            if once and often and max(once) > max(often) and later:
                wanted.add((group, *later[0]))
    assert {(r.group, r.parent, r.branch_turn) for r in siblings(rollouts)} == wanted != set()


@pytest.mark.parametrize("at", ["every", "uniform", "entropy"])
def test_siblings_branch_from_siblings_in_later_rounds(at, tmp_path):
    settings = {"at": at, "every": 2, "points": 5, "siblings": 2, "rounds": 3}
    rollouts = played(settings, record=True)
    known = by_member(rollouts)
    assert len(known) == len(rollouts), "each has a number of its own"
    nested = [r for r in siblings(rollouts) if known[r.group, r.parent].parent is not None]
    assert nested
    points = [(r.group, r.parent, r.branch_turn) for r in siblings(rollouts)]
    assert all(points.count(point) == 2 for point in points), "no turn is branched at twice"
    for one in siblings(rollouts):
        parent = known[one.group, one.parent]
        assert parent.member < one.member
        assert parent.branch_turn < one.branch_turn < len(parent.turns)
        assert one.turns[: one.branch_turn] == parent.turns[: one.branch_turn]
        replay(one.recording)
    first = played({**settings, "rounds": 1}, record=True)
    for group in (0, 1):
        own = [r for r in first if r.group == group]
        assert [r for r in rollouts if r.group == group][: len(own)] == own
    rollout_files.write(tmp_path / "tree.jsonl", rollouts)
    read = rollout_files.read(tmp_path / "tree.jsonl").rollouts
    table = TurnTable.from_rollouts(read)
    nodes = tree_of(table).node
    assert len(np.unique(nodes)) == sum(len(r.own_turns) for r in rollouts)
    copied = samples(rollouts, np.zeros(len(table)), shared=False)
    assert len(copied) == len(np.unique(nodes))


def test_no_turn_is_branched_at_once_the_budget_is_spent():
    free = played({"at": "every", "every": 1, "points": 6})
    steps = played({"at": "every", "every": 1, "points": 6, "budget": {"steps": 8}})
    tokens = played({"at": "every", "every": 1, "points": 6, "budget": {"tokens": 40}})
    assert steps == tokens, "a turn has five tokens"
    for group in (0, 1):
        own = [r for r in siblings(steps) if r.group == group]
        assert own == [r for r in siblings(free) if r.group == group][: len(own)]
        assert cost(own)[0] >= 8 > cost(own[:-1])[0]
        assert cost(own)[1] == 5 * cost(own)[0]


def test_a_sibling_that_fails_is_played_again_and_equals_one_that_did_not():
    settings = {"at": "every", "every": 2, "siblings": 2}
    model = Dice()
    whole = played(settings, model)
    members = sum(len(r.turns) for r in whole if r.parent is None)
    for at in range(members + 1, model.calls, 7):
        assert played(settings, Dice(fails=(at,))) == whole


def test_a_group_whose_sibling_keeps_failing_is_lost():
    model = Dice()
    whole = played({"at": "every", "every": 2}, model)
    assert not any(r.error for r in whole)
    lost = played({"at": "every", "every": 2}, Dice(fails=range(60, 999)))
    assert any("the model is gone" in r.error for r in lost)


def test_files_and_recordings_keep_the_tree(tmp_path):
    rollouts = played({"at": "every", "every": 2}, record=True)
    rollout_files.write(tmp_path / "tree.jsonl", rollouts)
    read = rollout_files.read(tmp_path / "tree.jsonl").rollouts
    tree = [(r.group, r.member, r.parent, r.branch_turn) for r in rollouts]
    assert [(r.group, r.member, r.parent, r.branch_turn) for r in read] == tree
    from_file, table = TurnTable.from_rollouts(read), TurnTable.from_rollouts(rollouts)
    np.testing.assert_array_equal(from_file.parent, table.parent)
    with pytest.raises(TableError, match="branched from member 0, which is not among"):
        TurnTable.from_rollouts(siblings(rollouts))


def test_without_log_probabilities_their_entropy_is_refused():
    rollouts = played(None)
    for rollout in rollouts:
        rollout.turns = rollout.turns[:1] + [
            type(turn)(
                **{name: getattr(turn, name) for name in turn.__slots__}
                | {"completion": Completion("a")}
            )
            for turn in rollout.turns[1:]
        ]
    with pytest.raises(ConfigError, match="'entropy', which needs the log-probabilities"):
        Branches(BranchConfig(at="entropy")).choose(rollouts, 0)


def test_shared_turns_are_context_and_no_targets():
    rollouts = played({"at": "every", "every": 2}, context="transcript")
    own = sum(len(rollout.own_turns) for rollout in rollouts)
    total = sum(len(rollout.turns) for rollout in rollouts)
    advantage = np.arange(total, dtype=float)
    assert own < total == len(samples(rollouts, advantage))
    kept = samples(rollouts, advantage, shared=False)
    numbers = iter(range(total))
    wanted = [
        number
        for rollout in rollouts
        for t, number in zip(range(len(rollout.turns)), numbers, strict=False)
        if t >= rollout.branch_turn
    ]
    assert [row.advantage for row in kept] == wanted


def test_siblings_over_http_are_those_played_in_this_process():
    settings = {"at": "every", "every": 2, "siblings": 2, "rounds": 2}
    app = create_app("agentgyms/Corridor-v0", token="", max_sessions=8)
    with Server(app) as server:
        assert played(settings, url=server.url) == played(settings)


def test_the_recording_of_a_sibling_replays_from_the_first_turn():
    rollouts = played({"at": "every", "every": 2}, record=True)
    for one in siblings(rollouts):
        assert one.recording.header["branch"] == {"parent": one.parent, "turn": one.branch_turn}
        assert one.recording.actions == [turn.action for turn in one.turns]
        replay(one.recording)
    read = from_recordings([one.recording for one in rollouts], Path("some"))
    assert [(r.parent, r.branch_turn) for r in read] == [
        (r.parent, r.branch_turn) for r in rollouts
    ]
