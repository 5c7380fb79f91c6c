"""Annotators that read the environment's oracle, against one forward pass for each number."""

import asyncio
import dataclasses
import itertools
import json

import numpy as np
import pytest
import torch
from random_rollouts import some_rollouts

from agentgyms.core import experts
from harness import annotators, prompts
from harness.annotators import AnnotatorContext
from harness.credit import TurnTable
from harness.credit.tokens import token_table
from harness.inference.completers import Sampling
from harness.model.packing import Sample, to_batch
from harness.rollouts.agent import Agent
from harness.rollouts.collect import collect
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.views import Decision
from harness.types.errors import ConfigError
from harness.types.rollout import Completion, lengths_of
from harness.types.task_draws import TaskDraw

GOLDEN, ACTION = "Ada Lovelace", "answer[Ada Lovelace]"
KINDS = [("window", "turn"), ("transcript", "token")]


def told(rollouts, oracles):
    """The rollouts, with what an oracle says before and after each turn."""
    told = iter(oracles)
    for rollout in rollouts:
        rollout.turns[:] = [
            dataclasses.replace(turn, oracle=json.dumps(a), next_oracle=json.dumps(b))
            for turn, (a, b) in zip(rollout.turns, told, strict=False)
        ]
    return rollouts


def answered(policy, context):
    rollouts = some_rollouts(policy, context)
    oracle = {"answer": ACTION, "golden": [GOLDEN, "Countess Lovelace"]}
    return told(rollouts, [(oracle, oracle)] * sum(len(one.turns) for one in rollouts))


def table_of(rollouts, rows):
    turns = TurnTable.from_rollouts(rollouts)
    return turns if rows == "turn" else token_table(turns, lengths_of(rollouts))


def belief(policy, prompt, text, measure):
    """How sure the policy is of the answer behind a prompt: one forward pass."""
    before, answer = policy.encode(text), policy.encode(GOLDEN)
    row = Sample(prompt, before + answer, (0.0,) * len(before + answer), 0.0)
    with torch.no_grad():
        logprob, _ = policy.logprobs(to_batch([row], policy.pad_id))
    mean = float(logprob[0, len(prompt) + len(before) :].mean())
    return np.exp(mean) if measure == "prob" else mean


@pytest.mark.parametrize(("context", "rows"), KINDS)
@pytest.mark.parametrize("measure", ["logprob", "prob"])
def test_gains_are_what_a_turn_adds_to_the_answers_probability(policy, context, rows, measure):
    rollouts = answered(policy, context)
    style = prompts.load("compact", "agentgyms/SearchQA-v0")
    annotator_context = AnnotatorContext(policy, context=context, rows=rows, style=style)
    given = {"measure": measure}
    annotator = annotators.make("information_gain", given, annotator_context)
    table = annotator.annotate(table_of(rollouts, rows), rollouts)
    expected = []
    for rollout in rollouts:
        found = [
            belief(policy, turn.completion.prompt_ids, "answer[", measure) for turn in rollout.turns
        ]
        expected += [after - before for before, after in itertools.pairwise(found)] + [0]
    ends = np.cumsum(lengths_of(rollouts)) - 1
    got = table.process_reward[ends] if rows == "token" else table.process_reward
    np.testing.assert_allclose(got, expected, atol=1e-5)
    assert np.abs(got).max() > 1e-4
    assert np.count_nonzero(table.process_reward) == np.count_nonzero(expected)


@pytest.mark.parametrize(
    ("env_id", "style", "written"),
    [
        ("SearchQA", "think", "<think>Enough</think>\n<answer>Ada Lovelace"),
        ("SearchQA", "direct", "<answer>Ada Lovelace"),
        ("Corridor", "think", "<think>Enough</think><action>answer[Ada Lovelace"),
    ],
)
def test_the_answer_follows_a_thought_where_the_style_has_thoughts(policy, env_id, style, written):
    (rollout,) = answered(policy, "window")[:1]
    style = prompts.load(style, f"agentgyms/{env_id}-v0")
    context = AnnotatorContext(policy, style=style)
    annotator = annotators.make("information_gain", {"thought": "Enough"}, context)
    row = next(iter(annotator._rows(rollout)))
    assert policy.decode(row.response_ids) == written
    assert [i for i in row.turn if i >= 0] == [0] * len(policy.encode(GOLDEN))
    assert row.prompt_ids == rollout.turns[0].completion.prompt_ids


def test_a_prompt_that_leaves_no_room_for_the_answer_loses_its_beginning(policy):
    (rollout,) = answered(policy, "window")[:1]
    style = prompts.load("compact", "agentgyms/SearchQA-v0")
    annotator = annotators.make("information_gain", {}, AnnotatorContext(policy, style=style))
    long = tuple(range(3, 13)) * policy.max_length
    said = dataclasses.replace(rollout.turns[0].completion, prompt_ids=long)
    rollout.turns[0] = dataclasses.replace(rollout.turns[0], completion=said)
    row = next(iter(annotator._rows(rollout)))
    assert row.length == policy.max_length
    assert long[-len(row.prompt_ids) :] == row.prompt_ids


def test_moves_saved_by_hand(policy):
    """One of the best moves, one in vain, one that loses, and what is lost or unknown already."""
    rollouts = some_rollouts(policy, groups=2)
    pairs = [(5, 4), (4, 4), (4, 6), (3, -1), (-1, -1), (4, -2), (-2, 3), (1, 0)]
    left = [pairs[i % len(pairs)] for i in range(sum(len(one.turns) for one in rollouts))]
    told(rollouts, [[{"optimal_remaining": n} for n in pair] for pair in left])
    annotator = annotators.make("solver_gain", {}, AnnotatorContext(policy))
    table = annotator.annotate(table_of(rollouts, "turn"), rollouts)
    saved = dict(zip(pairs, [1, 0, -2, -3, 0, 0, 0, 1], strict=True))
    assert table.process_reward.tolist() == [saved[pair] for pair in left]


@pytest.mark.parametrize("name", ["information_gain", "solver_gain"])
def test_an_environment_without_the_answer_is_named(policy, name):
    rollouts = some_rollouts(policy, groups=1)
    style = prompts.load("compact", "agentgyms/SearchQA-v0")
    annotator = annotators.make(name, {}, AnnotatorContext(policy, style=style))
    with pytest.raises(ConfigError, match=f"{name}.*needs environments whose oracle has"):
        annotator.annotate(table_of(rollouts, "turn"), rollouts)
    told(rollouts, [({"best": "go"}, {"best": "go"})] * 12)
    with pytest.raises(ConfigError, match=r'such as .*; got .*"best": "go"'):
        annotator.annotate(table_of(rollouts, "turn"), rollouts)


def test_wrong_settings_are_named():
    with pytest.raises(ConfigError, match=r"information_gain\.measure"):
        annotators.complete("information_gain", {"measure": "odds"})
    with pytest.raises(ConfigError, match="without tags"):
        annotators.complete("information_gain", {"thought": "</think>"})
    assert annotators.needs_oracle("solver_gain", {})
    assert not annotators.needs_oracle("entropy", {})


class Listener:
    """Plays the expert's action, from a twin that knows it, and keeps the prompts it was shown."""

    def __init__(self, env_id):
        style = prompts.load("compact", env_id)
        self.agent, self.shown = Agent(None, style, Sampling(), 2), []
        self.actions = None

    async def act(self, view, seed):
        self.shown.append(str(self.agent.messages(view)))
        if self.actions is None:
            action = experts.choose(json.loads(view.info["oracle"]), "best")
        else:
            action = self.actions[len(view.turns)]
        return Decision(action, Completion(action))


@pytest.mark.parametrize("name", ["SearchQA", "ALFWorld", "Sokoban", "Corridor"])
def test_experts_save_a_move_each_turn_and_prompts_do_not_show_the_oracle(policy, name):
    env_id = f"agentgyms/{name}-v0"
    draw, actor = TaskDraw("", 3), Listener(env_id)

    def play(**settings):
        pool = EnvPool(env_id, 1, 1, max_turns=40, **settings)
        draws = [dataclasses.replace(draw, task_id=pool.tasks()[0])]
        return asyncio.run(collect(pool, draws, actor, seed=0))

    rollouts = play(oracle=True)
    assert rollouts[0].success
    annotator = annotators.make("solver_gain", {}, AnnotatorContext(policy))
    filled = annotator.annotate(TurnTable.from_rollouts(rollouts), with_tokens(rollouts))
    assert filled.process_reward.tolist() == [1.0] * len(rollouts[0].turns)
    shown, actor.shown = actor.shown, []
    actor.actions = [turn.action for turn in rollouts[0].turns]
    blind = play()
    assert actor.shown == shown
    assert {turn.oracle + turn.next_oracle for turn in blind[0].turns} == {""}
    assert blind == rollouts


def with_tokens(rollouts):
    """The rollouts with a sampled token for each turn."""
    return [
        dataclasses.replace(
            rollout,
            turns=[
                dataclasses.replace(turn, completion=Completion("", (1,), (2,), (-1.0,)))
                for turn in rollout.turns
            ],
        )
        for rollout in rollouts
    ]
