"""Annotators: what they fill in, and that those with a model learn."""

import copy
import dataclasses
import math

import numpy as np
import pytest
import torch
from random_rollouts import some_rollouts

from harness import annotators
from harness.annotators import AnnotatorContext
from harness.credit import TurnTable
from harness.credit.estimators.gae import gae_returns
from harness.credit.preferences import Pairs
from harness.credit.tokens import token_table
from harness.model.packing import Sample, samples, to_batch
from harness.types.errors import ConfigError, TrainingError
from harness.types.rollout import lengths_of

KINDS = [(c, r) for c in ("window", "transcript") for r in ("turn", "token")]
QUICK = {("window", "turn"), ("transcript", "token")}
SOME_KINDS = [k if k in QUICK else pytest.param(*k, marks=pytest.mark.slow) for k in KINDS]


def table_of(rollouts, rows="turn"):
    turns = TurnTable.from_rollouts(rollouts)
    return turns if rows == "turn" else token_table(turns, lengths_of(rollouts))


def other(policy, by=0.05):
    """A policy a little away from another one."""
    twin = policy.frozen_copy()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in twin.model.parameters():
            parameter.add_(by * torch.randn(parameter.shape, generator=generator))
    return twin


def alone(policy, rollouts):
    """Log-probabilities and entropies of each turn, one forward pass for each: the plain way."""
    found = []
    for turn in (turn for rollout in rollouts for turn in rollout.turns):
        said = turn.completion
        row = Sample(said.prompt_ids, said.response_ids, said.logprobs, 0.0)
        with torch.no_grad():
            logprob, entropy = policy.logprobs(to_batch([row], policy.pad_id))
        start = len(said.prompt_ids)
        found.append((logprob[0, start:].double().numpy(), entropy[0, start:].double().numpy()))
    return found


@pytest.mark.parametrize(("context", "rows"), KINDS)
def test_entropy_and_divergence_are_those_of_each_turn_alone(policy, context, rows):
    rollouts = some_rollouts(policy, context)
    reference = other(policy)
    annotator_context = AnnotatorContext(policy, reference, context, rows, max_tokens=100)
    table = table_of(rollouts, rows)
    for name in ("entropy", "reference_kl"):
        table = annotators.make(name, {}, annotator_context).annotate(table, rollouts)
    own, before = alone(policy, rollouts), alone(reference, rollouts)
    entropy = [entropy for _, entropy in own]
    kl = [a - b for (a, _), (b, _) in zip(own, before, strict=True)]
    if rows == "turn":
        entropy, kl = [[e.mean()] for e in entropy], [[k.sum()] for k in kl]
    assert table.entropy == pytest.approx(np.concatenate(entropy), abs=1e-5)
    assert table.kl == pytest.approx(np.concatenate(kl), abs=1e-5)
    same = AnnotatorContext(policy, policy.frozen_copy(), context, rows)
    assert not annotators.make("reference_kl", {}, same).annotate(table, rollouts).kl.any()


def energies(policy, turn, temperature):
    """The squared length of the gradient of log pi by the logits, from the logits themselves."""
    said = turn.completion
    ids = torch.tensor([[*said.prompt_ids, *said.response_ids]])
    with torch.no_grad():
        logits = policy.model(input_ids=ids).logits[0, len(said.prompt_ids) - 1 : -1].double()
    gradient = -torch.softmax(logits / temperature, dim=-1)
    gradient[torch.arange(len(gradient)), torch.tensor(said.response_ids)] += 1.0
    return gradient.square().sum(-1).numpy()


@pytest.mark.parametrize(("context", "rows"), SOME_KINDS)
def test_energies_are_squared_gradients_by_the_logits(policy, context, rows):
    rollouts, temperature = some_rollouts(policy, context), 0.7
    told = AnnotatorContext(policy, None, context, rows, temperature=temperature, max_tokens=100)
    table = annotators.make("energy", {}, told).annotate(table_of(rollouts, rows), rollouts)
    turns = [turn for rollout in rollouts for turn in rollout.turns]
    expected = [energies(policy, turn, temperature) for turn in turns]
    if rows == "turn":
        expected = [[found.sum()] for found in expected]
    assert table.energy == pytest.approx(np.concatenate(expected), abs=1e-5)


@pytest.mark.parametrize(("context", "rows"), KINDS)
def test_environments_rewards_are_process_rewards_without_the_outcome(policy, context, rows):
    rollouts = some_rollouts(policy, context)
    won = [number for number, rollout in enumerate(rollouts) if rollout.success]
    assert 0 < len(won) < len(rollouts)
    expected = [[turn.reward for turn in rollout.turns] for rollout in rollouts]
    for number in won:
        expected[number][-1] -= 10.0
    table = annotators.make(
        "environment_reward",
        {"outcome": 10.0},
        AnnotatorContext(policy, context=context, rows=rows),
    ).annotate(table_of(rollouts, rows), rollouts)
    got, lengths = table.process_reward, lengths_of(rollouts)
    if rows == "token":
        ends = np.cumsum(lengths) - 1
        assert not np.delete(got, ends).any()
        got = got[ends]
    assert got.tolist() == [reward for rollout in expected for reward in rollout]


@pytest.mark.parametrize(("context", "rows"), KINDS)
def test_subgoals_are_gains_over_the_best_progress_so_far(policy, context, rows):
    rollouts = some_rollouts(policy, context)
    rollout = max(rollouts, key=lambda one: len(one.turns))
    reached = [0.25, math.nan, 0.5, 0.25, 0.5, 1.0][: len(rollout.turns)]
    rollout.turns[:] = [
        dataclasses.replace(turn, progress=progress)
        for turn, progress in zip(rollout.turns, reached, strict=True)
    ]
    told = AnnotatorContext(policy, context=context, rows=rows)
    table = annotators.make("subgoals", {}, told).annotate(table_of(rollouts, rows), rollouts)
    got, lengths = table.process_reward, lengths_of(rollouts)
    if rows == "token":
        got = got[np.cumsum(lengths) - 1]
    gains = [0.25, 0.0, 0.25, 0.0, 0.0, 0.5][: len(reached)]
    expected = [gains if one is rollout else [0.0] * len(one.turns) for one in rollouts]
    assert got.tolist() == [gain for one in expected for gain in one]


@pytest.mark.parametrize(("context", "rows"), KINDS)
def test_lengths_are_those_of_the_responses(policy, context, rows):
    rollouts = some_rollouts(policy, context)
    told = AnnotatorContext(policy, context=context, rows=rows)
    table = annotators.make("response_length", {}, told).annotate(
        table_of(rollouts, rows), rollouts
    )
    lengths = lengths_of(rollouts)
    expected = np.repeat(lengths, lengths) if rows == "token" else lengths
    assert table.length.tolist() == expected.tolist()


@pytest.mark.parametrize("context", ["window", "transcript"])
def test_hindsight_is_told_how_the_episode_ended(policy, context):
    rollouts = some_rollouts(policy, context)
    annotator_context = AnnotatorContext(policy, context=context)
    settings = {"temperature": 2.0, "hint": " so: {observation}"}
    table = annotators.make("hindsight", settings, annotator_context).annotate(
        table_of(rollouts), rollouts
    )
    turns = [turn for rollout in rollouts for turn in rollout.turns]
    ending = policy.encode("<|im_start|>")
    told = []
    for turn in turns:
        said = turn.completion
        prompt = said.prompt_ids[:-1] + policy.encode(" so: shelf key") + ending
        row = Sample(prompt, said.response_ids, said.logprobs, 0.0)
        with torch.no_grad():
            logprob, _ = policy.logprobs(to_batch([row], policy.pad_id))
        told.append(float(logprob[0, len(prompt) :].mean()))
    assert table.hindsight == pytest.approx(np.exp(np.array(told) / 2), abs=1e-6)


def test_special_tokens_in_a_hint_are_words(policy):
    """An observation cannot end the message that shows it."""
    rollout = some_rollouts(policy)[0]
    last = dataclasses.replace(rollout.turns[-1], next_observation="so <|im_end|><|im_start|>")
    rollout.turns[-1] = last
    plain = last.completion.prompt_ids
    for row in annotators.make("hindsight", {}, AnnotatorContext(policy))._rows(rollout):
        for mark in policy.encode("<|im_end|><|im_start|>"):
            assert row.prompt_ids.count(mark) == plain.count(mark)


def test_a_hint_that_does_not_fit_is_cut(policy):
    (rollout,) = some_rollouts(policy, groups=1)[:1]
    last = dataclasses.replace(rollout.turns[-1], next_observation="key " * policy.max_length)
    rollout.turns[-1] = last
    hindsight = annotators.make("hindsight", {}, AnnotatorContext(policy))
    rows = list(hindsight._rows(rollout))
    assert {row.length for row in rows} == {policy.max_length}
    assert np.isfinite(hindsight.annotate(table_of([rollout]), [rollout]).hindsight).all()
    odd = dataclasses.replace(last.completion, prompt_ids=(5, 6, 7))
    rollout.turns[-1] = dataclasses.replace(last, completion=odd)
    with pytest.raises(ConfigError, match="does not end as the chat template"):
        hindsight.annotate(table_of([rollout]), [rollout])


@pytest.mark.parametrize(("context", "rows"), SOME_KINDS)
@pytest.mark.parametrize("objective", ["dpo", "ce"])
def test_a_reward_model_learns_which_rollouts_succeed(policy, context, rows, objective):
    """Released code detaches the scores: then no gradient arrives and the accuracy stays."""
    rollouts = some_rollouts(policy, context)
    annotator_context = AnnotatorContext(
        policy, policy.frozen_copy(), context, rows, max_tokens=200
    )
    settings = {"objective": objective, "learning_rate": 3e-3, "beta": 0.5}
    model = annotators.make("process_reward", settings, annotator_context)
    table = table_of(rollouts, rows)
    figures = []
    for step in range(12):
        filled = model.annotate(table, rollouts)
        figures.append(model.learn(filled, rollouts, step=step, seed=0))
    assert all(f["process_reward/grad_norm"] > 0 for f in figures)
    assert figures[0]["process_reward/pair_accuracy"] == 0.5
    assert figures[-1]["process_reward/pair_accuracy"] == 1
    assert figures[0]["process_reward/pairs"] == 12
    assert figures[-1]["process_reward/loss"] < 0.8 * figures[0]["process_reward/loss"]
    returns = np.bincount(filled.rollout, weights=filled.process_reward)
    success = np.array([rollout.success for rollout in rollouts])
    assert returns[success].mean() > returns[~success].mean()


@pytest.mark.parametrize("name", ["critic", "process_reward"])
def test_a_model_beside_the_policy_learns_without_dropout(policy, name):
    told = []
    for seed in (1, 2):
        own = policy.trainable_copy()
        for layer in own.model.modules():
            if hasattr(layer, "attention_dropout"):
                layer.attention_dropout = 0.5
        rollouts = some_rollouts(policy)
        beside = annotators.make(name, {"learning_rate": 1e-2}, AnnotatorContext(own))
        torch.manual_seed(seed)
        for step in range(2):
            filled = beside.annotate(table_of(rollouts), rollouts)
            figures = beside.learn(filled, rollouts, step=step, seed=0)
        told.append(figures)
    assert told[0] == told[1]


@pytest.mark.parametrize("update", ["before", "after"])
def test_a_reward_model_scores_before_or_after_it_learns(policy, update):
    rollouts = some_rollouts(policy)
    model = annotators.make(
        "process_reward", {"update": update, "learning_rate": 1e-3}, AnnotatorContext(policy)
    )
    table = table_of(rollouts)
    reward = model.annotate(table, rollouts).process_reward
    assert reward.any() == (update == "before"), "it starts as a copy of the policy"
    assert model.annotate(table, rollouts).process_reward.any()


def test_two_passes_have_the_gradient_of_one(policy):
    """The step down equals autograd through all rollouts of the batch at once."""
    rollouts = some_rollouts(policy, groups=2)
    annotator_context = AnnotatorContext(policy, max_tokens=60)
    settings = {"beta": 0.3, "learning_rate": 1e-3, "max_grad_norm": 1e9, "weight_decay": 0.0}
    model = annotators.make("process_reward", settings, annotator_context)
    model.model = other(policy, 0.02)
    model.model.model.requires_grad_(True)
    plain = model.model.trainable_copy()
    descended = []
    model._optimizer.step = lambda: descended.append(True)
    model.annotate(table_of(rollouts), rollouts)

    rows = samples(rollouts, np.zeros(sum(len(r.turns) for r in rollouts)))
    batch = to_batch(rows, policy.pad_id)
    with torch.no_grad():
        old = policy.logprobs(batch)[0].sum(1)
    ratio = plain.logprobs(batch)[0].sum(1) - old
    owner = torch.tensor([i for i, r in enumerate(rollouts) for _ in r.turns])
    score = 0.3 * torch.zeros(len(rollouts)).index_add(0, owner, ratio)
    group = np.array([r.group for r in rollouts])
    pairs = Pairs.within(group, np.array([r.success for r in rollouts]))
    margin = score[torch.tensor(pairs.winner)] - score[torch.tensor(pairs.loser)]
    (-torch.nn.functional.logsigmoid(margin).mean()).backward()
    assert descended
    expected = [p.grad for p in plain.model.parameters()]
    for ours, theirs in zip(model.model.model.parameters(), expected, strict=True):
        torch.testing.assert_close(ours.grad, theirs, atol=1e-5, rtol=1e-3)


def test_positive_rollouts_may_be_those_above_a_threshold(policy):
    rollouts = some_rollouts(policy, groups=1)
    table = dataclasses.replace(table_of(rollouts), reward=np.ones(len(table_of(rollouts))))
    turns = sorted(len(r.turns) for r in rollouts)
    settings = {"threshold": turns[0] + 0.5}
    model = annotators.make("process_reward", settings, AnnotatorContext(policy))
    model.annotate(table, rollouts)
    positive = sum(t > turns[0] for t in turns)
    pairs = model.learn(table, rollouts, step=0, seed=0)["process_reward/pairs"]
    assert pairs == positive * (4 - positive)


def test_a_step_without_pairs_teaches_nothing(policy):
    rollouts = [r for r in some_rollouts(policy) if r.success]
    model = annotators.make("process_reward", {}, AnnotatorContext(policy))
    table = model.annotate(table_of(rollouts), rollouts)
    figures = model.learn(table, rollouts, step=0, seed=0)
    assert figures["process_reward/grad_norm"] == 0
    assert "process_reward/pair_accuracy" not in figures
    assert not table.process_reward.any()


@pytest.mark.parametrize(("context", "rows"), SOME_KINDS)
@pytest.mark.parametrize("kind", ["own", "head"])
def test_a_critic_learns_what_states_are_worth(policy, context, rows, kind):
    rollouts = some_rollouts(policy, context)
    before = [p.clone() for p in policy.model.parameters()]
    annotator_context = AnnotatorContext(policy, None, context, rows, max_tokens=150)
    settings = {"model": kind, "learning_rate": 3e-3, "head_learning_rate": 0.03, "clip": None}
    critic = annotators.make("critic", settings, annotator_context)
    table = table_of(rollouts, rows)
    losses = []
    for step in range(12):
        filled = critic.annotate(table, rollouts)
        losses.append(critic.learn(filled, rollouts, step=step, seed=step)["critic/loss"])
        if not step:
            assert not filled.value.any(), "it knows nothing yet"
    assert losses[-1] < (0.4 if kind == "own" else 0.9) * losses[0]
    returns = np.bincount(table.rollout, weights=table.reward)[table.rollout]
    assert filled.value[returns > 0].mean() > filled.value[returns == 0].mean()
    assert all(torch.equal(a, b) for a, b in zip(before, policy.model.parameters(), strict=True))


@pytest.mark.parametrize(
    ("estimator", "credit"),
    [
        ("gae", {"gamma": 0.5, "lam": 1.0}),
        ("oprl", {"base": "gae", "gamma": 0.5}),
        ("oprl", {"base": {"name": "gae", "gamma": 0.5}, "gamma": 1.0}),
    ],
)
def test_a_critic_learns_the_returns_of_gae_wherever_it_is(policy, monkeypatch, estimator, credit):
    rollouts = some_rollouts(policy)
    annotator_context = AnnotatorContext(policy, estimator=estimator, credit=credit)
    critic = annotators.make("critic", {"model": "head"}, annotator_context)
    table = critic.annotate(table_of(rollouts), rollouts)
    learned, targets = [], critic._targets

    def told(rollouts, returns, value):
        learned.append(returns)
        return targets(rollouts, returns, value)

    monkeypatch.setattr(critic, "_targets", told)
    critic.learn(table, rollouts, step=0, seed=0)
    assert learned[0] == pytest.approx(gae_returns(table, gamma=0.5), abs=1e-12)
    assert learned[0] != pytest.approx(gae_returns(table, gamma=1.0))


def test_a_turns_value_is_that_before_its_first_token(policy):
    rollouts = some_rollouts(policy, "transcript")
    values = {}
    for rows in ("turn", "token"):
        annotator_context = AnnotatorContext(policy, None, "transcript", rows, max_tokens=100)
        critic = annotators.make("critic", {}, annotator_context)
        torch.nn.init.normal_(critic.head.weight, generator=torch.Generator().manual_seed(1))
        values[rows] = critic.annotate(table_of(rollouts, rows), rollouts).value
    lengths = lengths_of(rollouts)
    first = np.cumsum(lengths) - lengths
    assert values["turn"] == pytest.approx(values["token"][first], abs=1e-5)
    assert len(set(values["token"].round(6))) > len(first)


@pytest.mark.parametrize("name", ["critic", "process_reward"])
def test_state_goes_on_where_it_stopped(policy, name):
    rollouts = some_rollouts(policy)
    table = table_of(rollouts)

    def step(annotator, number):
        filled = annotator.annotate(table, rollouts)
        figures = annotator.learn(filled, rollouts, step=number, seed=number)
        column = getattr(filled, annotators.columns(name)[0])
        return column.tolist(), figures

    first = annotators.make(name, {"learning_rate": 1e-3}, AnnotatorContext(policy))
    step(first, 0)
    second = annotators.make(name, {"learning_rate": 1e-3}, AnnotatorContext(policy))
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    for number in (1, 2):
        assert step(first, number) == step(second, number)


def test_scores_that_are_not_finite_stop_the_run(policy):
    rollouts = some_rollouts(policy)
    model = annotators.make("process_reward", {}, AnnotatorContext(policy))
    with torch.no_grad():
        next(model.model.model.parameters())[:] = float("inf")
    with pytest.raises(TrainingError, match="scores are not finite: lower"):
        model.annotate(table_of(rollouts), rollouts)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("criticism", {}, "unknown annotator 'criticism': expected one of continuations, critic"),
        ("critic", {"lr": 1}, "annotator 'critic' has no hyperparameter 'lr'"),
        ("critic", {"model": "big"}, "critic.model must be one of 'own', 'head'"),
        ("critic", {"clip": 0.0}, "critic.clip must be"),
        ("critic", {"epochs": 0}, "critic.epochs must be"),
        ("critic", {"learning_rate": "fast"}, "critic.learning_rate must be"),
        ("process_reward", {"objective": "mse"}, "process_reward.objective must be one of"),
        ("process_reward", {"update": "never"}, "process_reward.update must be one of"),
        ("process_reward", {"beta": 0.0}, "process_reward.beta must be"),
        ("process_reward", {"threshold": float("nan")}, "process_reward.threshold must be"),
        ("hindsight", {"temperature": 0.0}, "hindsight.temperature must be"),
        ("hindsight", {"hint": "it ended"}, "hindsight.hint must say"),
        ("hindsight", {"hint": 5}, "hindsight.hint must say .* got 5"),
        ("environment_reward", {"outcome": "ten"}, "environment_reward.outcome must be"),
        ("entropy", {"top": 3}, "annotator 'entropy' has no hyperparameter 'top': expected none"),
    ],
)
def test_wrong_settings_are_named(name, settings, message):
    with pytest.raises(ConfigError, match=message):
        annotators.complete(name, settings)


def test_who_needs_the_policy_before_training():
    needs = {name: annotators.needs_reference(name, {}) for name in annotators.names()}
    assert needs == {
        "critic": False,
        "continuations": False,
        "energy": False,
        "entropy": False,
        "environment_reward": False,
        "response_length": False,
        "subgoals": False,
        "hindsight": False,
        "process_reward": False,
        "reference_kl": True,
        "mismatched_ratio": True,
        "information_gain": False,
        "solver_gain": False,
        "seat_baseline": False,
        "teacher": False,
    }
    assert annotators.needs_reference("process_reward", {"objective": "ce"})
    assert annotators.needs_reference("teacher", {"model": "initial"})
