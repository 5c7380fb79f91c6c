"""Updates of a tiny policy: passes over a step's samples, what counts in means, what is logged."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from sequences import sample

from harness import config as configs
from harness.config import OptimizerConfig
from harness.config.rollout_settings import correction_of
from harness.losses.mismatch import UpdateCorrection
from harness.model.logprobs import score_tokens
from harness.model.packing import Sample, samples
from harness.model.policy import Policy
from harness.training.learner import Learner
from harness.types.errors import TrainingError
from harness.types.rollout import Completion, Rollout, Turn

CONFIG = OptimizerConfig(learning_rate=1e-2, mini_batches=1)


def learner_of(policy, config=CONFIG, loss="clipped", temperature=1.0, reference=None, **settings):
    own = Policy(copy.deepcopy(policy.model), policy.tokenizer, "cpu")
    return Learner(own, reference, config, loss, settings, temperature)


def on_policy(policy, rows):
    """The samples as the policy itself would have drawn them."""
    scores = score_tokens(policy, rows)
    return [
        replace(row, old_logprobs=tuple(found.logprob))
        for row, found in zip(rows, scores, strict=True)
    ]


@pytest.fixture(scope="module")
def rows(policy):
    chance = np.random.default_rng(0)
    texts = chance.integers(0, 300, size=(6, 9)).tolist()
    turns = [
        Sample((*text[:4],), (*text[4:],), (0.0,) * 5, i - 1.5) for i, text in enumerate(texts)
    ]
    chat = Sample((5, 6), (7, 8, 9, 10), (0.0,) * 3, (1.0, 0.0, -1.0), turn=(0, 0, -1, 1))
    return on_policy(policy, [*turns, chat])


def weights(learner):
    return torch.cat([p.detach().flatten() for p in learner.policy.model.parameters()])


def test_the_ratio_moves_away_from_one_in_the_second_pass_and_is_clipped(policy, rows):
    once, twice = (learner_of(policy, configs.replace(CONFIG, epochs=n)) for n in (1, 2))
    first = once.update(rows, step=0, seed=0)
    second = twice.update(rows, step=0, seed=0)
    assert first["update/ratio_max"] == pytest.approx(1, abs=1e-4)
    assert first["update/clipped_share"] == 0
    assert first["update/kl_old"] == pytest.approx(0, abs=1e-6)
    assert second["update/ratio_max"] > 1.2
    assert second["update/clipped_share"] > 0
    assert second["update/kl_old"] > 0
    assert (first["update/epochs"], second["update/epochs"]) == (1, 2)
    assert not torch.equal(weights(once), weights(twice))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"ratio": "turn", "aggregation": "sequence_mean_token_mean"},
        {"ratio": "sequence", "aggregation": "sequence_mean_token_sum", "constant": 5.0},
        {"entropy_coefficient": 0.1},
        {"kl_coefficient": 0.1, "aggregation": "sequence_mean_token_mean"},
    ],
)
def test_micro_batches_change_no_update(policy, rows, settings):
    cuts = [configs.replace(CONFIG, micro_batch_tokens=size) for size in (8192, 10)]
    reference = policy.frozen_copy()
    learners = [learner_of(policy, c, reference=reference, **settings) for c in cuts]
    whole, parts = (one.update(rows * 2, step=0, seed=0) for one in learners)
    assert parts["update/grad_norm"] == pytest.approx(whole["update/grad_norm"], rel=1e-3)
    assert parts["update/loss"] == pytest.approx(whole["update/loss"], rel=1e-3, abs=1e-6)
    assert parts["update/entropy"] == pytest.approx(whole["update/entropy"], rel=1e-4)


@pytest.mark.parametrize(
    ("aggregation", "share"),
    [
        ("token_mean", 33 / 73),
        ("sequence_mean_token_mean", 7 / 17),
        ("sequence_mean_token_sum", 7 / 17),
    ],
)
def test_samples_without_credit_count_in_the_means(policy, rows, aggregation, share):
    """Though they do not pass through the model: 33 tokens of 7 sequences and 40 of 10."""
    nothing = [sample(4, 4, 0.0)] * 10
    alone, among = (
        learner_of(policy, aggregation=aggregation).update(some, step=0, seed=0)
        for some in (rows, rows + nothing)
    )
    assert alone["update/tokens"] == among["update/tokens"] == 33
    assert alone["update/loss"] < -0.1
    assert among["update/loss"] == pytest.approx(alone["update/loss"] * share, rel=1e-4)


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_a_gradient_that_is_not_finite_is_never_applied(policy, rows, wrong):
    learner = learner_of(policy)
    before = weights(learner)
    for credit in (wrong, (1.0, wrong, 0.0, 0.0, 0.0)):
        with pytest.raises(TrainingError, match="lower optimizer.learning_rate"):
            learner.update([replace(rows[0], advantage=credit)], step=0, seed=0)
    assert torch.equal(weights(learner), before)


def test_an_entropy_bonus_spreads_the_policy(policy, rows):
    idle = [replace(row, advantage=0.0) for row in rows]
    learner = learner_of(policy, entropy_coefficient=1.0)
    before = np.concatenate([found.entropy for found in score_tokens(learner.policy, idle)]).mean()
    for step in range(3):
        figures = learner.update(idle, step=step, seed=step)
    after = np.concatenate([found.entropy for found in score_tokens(learner.policy, idle)]).mean()
    assert after > before
    assert figures["update/tokens"] == sum(row.num_actions for row in idle)
    assert figures["update/loss"] < 0


def test_supervised_learning_makes_the_imitated_likelier(policy, rows):
    good, bad = replace(rows[0], advantage=1.0), replace(rows[1], advantage=0.0)
    learner = learner_of(policy, loss="nll")
    found = [learner.update([good, bad], step=step, seed=step) for step in range(8)]
    assert found[-1]["update/nll"] < found[0]["update/nll"] - 1
    assert "update/clipped_share" not in found[0]
    expected = -np.mean(good.old_logprobs) * good.num_actions / (good.num_actions + bad.num_actions)
    assert found[0]["update/loss"] == pytest.approx(expected, rel=1e-4)


def test_a_reference_is_asked_only_if_the_loss_needs_it(policy, rows, monkeypatch):
    reference = policy.frozen_copy()
    learner = learner_of(policy, reference=reference, kl_coefficient=0.1)
    figures = learner.update(rows, step=0, seed=0)
    assert figures["update/kl_reference"] == pytest.approx(0, abs=1e-6)
    assert learner.update(rows, step=1, seed=0)["update/kl_reference"] > 0
    monkeypatch.setattr(reference, "logprobs", lambda *_: 1 / 0)
    figures = learner_of(policy, reference=reference).update(rows, step=0, seed=0)
    assert "update/kl_reference" not in figures


def test_a_transcript_and_its_windows_give_one_update(policy):
    """Causal attention sees the same past in both, and the environment's tokens are not trained."""
    said = [((1, 2), (3, 4)), ((1, 2, 3, 4, 90, 91), (5,)), ((1, 2, 3, 4, 90, 91, 5, 92), (6, 7))]
    rollout = Rollout("t", "f", 0, 0, 0)
    for prompt, response in said:
        completion = Completion("x", prompt, response, (-3.0,) * len(response))
        rollout.turns.append(Turn("o", "s", completion, "x", "x", "ok", 0.0, "o", "s", 0.0))
    made = []
    for context in ("window", "transcript"):
        packed = on_policy(policy, samples([rollout], np.array([1.0, -0.5, 2.0]), context))
        learner = learner_of(policy, ratio="turn")
        made.append((learner.update(packed, step=0, seed=0), weights(learner)))
    (window, moved), (transcript, moved_too) = made
    assert window.pop("update/model_tokens") == 21, "prompts three times"
    assert transcript.pop("update/model_tokens") == 10
    assert transcript == pytest.approx(window, rel=1e-4, abs=1e-6)
    torch.testing.assert_close(moved, moved_too, atol=1e-4, rtol=0)


def moments(learner):
    """All that the optimizer keeps, its counters too."""
    kept = learner.optimizer.state_dict()["state"]
    return {
        (i, name): torch.as_tensor(x).clone() for i, own in kept.items() for name, x in own.items()
    }


def idle(rows):
    return [replace(row, advantage=0.0) for row in rows]


@pytest.mark.parametrize("offload", [False, True])
@pytest.mark.parametrize("name", ["adamw", "muon"])
def test_a_step_without_a_trained_token_moves_nothing(policy, rows, name, offload):
    if name == "muon" and (offload or not hasattr(torch.optim, "Muon")):
        pytest.skip("torch has Muon from 2.9 on, and its momentum is not offloaded")
    config = configs.replace(CONFIG, name=name, weight_decay=0.5)
    own = Policy(copy.deepcopy(policy.model), policy.tokenizer, "cpu")
    own.layout = replace(own.layout, offload="optimizer" if offload else None)
    learner = Learner(own, None, config, "clipped", {}, 1.0)
    learner.update(rows, step=0, seed=0)
    before, kept = weights(learner), moments(learner)
    figures = learner.update(idle(rows), step=1, seed=1)
    assert figures["update/tokens"] == figures["update/grad_norm"] == 0
    assert torch.equal(weights(learner), before)
    after = moments(learner)
    assert after.keys() == kept.keys()
    assert all(torch.equal(after[key], value) for key, value in kept.items())
    learner.update(rows, step=2, seed=2)
    assert not torch.equal(weights(learner), before)


def test_each_mini_batch_counts_alone(policy, rows):
    """One of two has nothing to learn from: the other's step is as if it were not there."""
    halves = configs.replace(CONFIG, mini_batch_size=len(rows), weight_decay=0.5)
    made = []
    for order in ([*rows, *idle(rows)], rows):
        learner = learner_of(policy, halves)
        learner.update(rows, step=0, seed=0)
        for part in (order[len(rows) :], order[: len(rows)]):
            if part:
                learner._optimizer_step(part)
        made.append(weights(learner))
    assert torch.equal(*made)


@pytest.mark.parametrize(
    "settings", [{"kl_coefficient": 0.1}, {"entropy_coefficient": 0.1}], ids=["kl", "entropy"]
)
def test_other_terms_learn_where_nothing_has_an_advantage(policy, rows, settings):
    reference = policy.frozen_copy()
    with torch.no_grad():
        for weight in reference.model.parameters():
            weight.mul_(1.1)
    learner = learner_of(policy, reference=reference, **settings)
    before = weights(learner)
    learner.update(idle(rows), step=0, seed=0)
    assert not torch.equal(weights(learner), before)


def test_rejected_tokens_are_no_trained_ones(policy, rows):
    far = [replace(row, old_logprobs=(-50.0,) * row.num_actions) for row in rows]
    rollout = configs.load(
        "corridor-tiny",
        [
            "rollout.correction=reject",
            "rollout.correction_bounds={unit='sequence', low=0.5, high=2}",
        ],
    ).rollout
    config = configs.replace(CONFIG, weight_decay=0.5)
    own = Policy(copy.deepcopy(policy.model), policy.tokenizer, "cpu")
    learner = Learner(
        own, None, config, "clipped", {}, 1.0, correction=UpdateCorrection(correction_of(rollout))
    )
    before = weights(learner)
    figures = learner.update(far, step=0, seed=0)
    assert figures["update/mismatch_rejected_share"] == 1
    assert torch.equal(weights(learner), before)
    learner.update(rows, step=1, seed=0)
    assert not torch.equal(weights(learner), before)


@pytest.mark.parametrize("micro_batch_tokens", [8192, 20])
def test_an_update_tells_the_rows_and_tokens_that_are_done(policy, rows, micro_batch_tokens):
    settings = configs.replace(CONFIG, epochs=2, micro_batch_tokens=micro_batch_tokens)
    told = []
    figures = learner_of(policy, settings).update(
        rows * 2, step=0, seed=0, on_learned=lambda *one: told.append(one)
    )
    assert sum(worth for worth, _ in told) == pytest.approx(2 * 2 * len(rows))
    assert sum(tokens for _, tokens in told) == figures["update/model_tokens"]
    assert len(told) >= 2 * settings.mini_batches
