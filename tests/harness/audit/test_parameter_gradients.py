"""Sketched gradients of a tiny policy: as the trainer's loss has them, and with a bounded error."""

from dataclasses import replace

import any_model
import numpy as np
import pytest
import torch
from made_rollouts import turn
from test_agreement import truth_like

from harness import losses
from harness.audit import agreement, spread, truth_sets
from harness.audit.evidence import Minimum
from harness.audit.fresh_groups import take
from harness.audit.parameter_gradients import Projection, sketches
from harness.audit.truth import Truth, TruthOptions
from harness.audit.truth_sets import TruthSet
from harness.credit.table import TurnTable
from harness.model.learning_mode import add_in_place
from harness.model.packing import samples, to_batch
from harness.types.rollout import Completion, Rollout

SIZE = 512
TEMPERATURE = 0.7


def played(policy, count=24, turns=2):
    """Return rollouts of random answers, with the policy's log-probabilities; some are equal."""
    rng = np.random.default_rng(0)
    rollouts = []
    for member in range(count):
        rollout = Rollout("task", "family", member // 6, member, 0)
        for t in range(turns):
            size = int(rng.integers(1, 6))
            answer = tuple(map(int, rng.integers(5, 300, size))) if member % 6 else (7, 8)
            completion = Completion("a", (5, 6 + t, 9), answer, (-1.0,) * len(answer))
            rollout.turns.append(replace(turn("a", f"s{t}", f"s{t + 1}"), completion=completion))
        rollouts.append(rollout)
    return rollouts


@pytest.fixture(scope="module")
def policy(new_policy):
    return new_policy


@pytest.fixture(scope="module")
def tiny(policy):
    rollouts = played(policy)
    projection = Projection(policy, SIZE)
    policy.model.train()
    found = sketches(policy, rollouts, projection, TEMPERATURE)
    assert policy.model.training
    policy.model.eval()
    assert all(parameter.grad is None for parameter in policy.model.parameters())
    return rollouts, projection, found


def loss_of(policy, rollouts, advantage):
    """Return the trainer's loss. The ratio of the policies is 1."""
    batch = to_batch(samples(rollouts, advantage), policy.pad_id)
    logprob, _ = policy.logprobs(batch, TEMPERATURE)
    batch = replace(batch, old_logprob=logprob.detach())
    return losses.get("clipped")(logprob, batch, aggregation="sequence_mean_token_sum")[0]


def exact(policy, rollouts, advantage):
    """Return the policy gradient by all parameters."""
    loss = loss_of(policy, rollouts, advantage)
    parts = torch.autograd.grad(loss, list(policy.model.parameters()), allow_unused=True)
    return -torch.cat([p.reshape(-1) for p in parts if p is not None]).double().numpy()


def cosine(one, two):
    return one @ two / np.sqrt((one @ one) * (two @ two))


def test_credit_times_sketches_is_the_gradient_of_the_trainers_loss(policy, tiny):
    rollouts, projection, found = tiny
    advantage = np.random.default_rng(1).normal(size=len(found))
    wanted = -projection.gradient(loss_of(policy, rollouts, advantage))
    summed = advantage @ found.astype(float)
    assert cosine(summed, wanted) == pytest.approx(1, abs=1e-4)


def test_the_error_of_the_projection_is_bounded(policy, tiny):
    """Cosines are off by about (1 - c^2) / sqrt(D); 4 times that is allowed."""
    rollouts, _, found = tiny
    rng = np.random.default_rng(2)
    true = rng.normal(size=len(found))
    apart = []
    for noise in (0.0, 0.3, 1.0, 3.0):
        credit = true + noise * rng.normal(size=len(found))
        one, two = (exact(policy, rollouts, values) for values in (true, credit))
        wanted = cosine(one, two)
        got = cosine(true @ found.astype(float), credit @ found.astype(float))
        apart.append(abs(got - wanted) / max((1 - wanted**2) / np.sqrt(SIZE), 1e-3))
    assert max(apart) < 4, apart


def test_a_policy_that_a_trainer_holds_is_refused():
    """Gradients that are added in place are not those that autograd returns."""
    held = any_model.policy_of("qwen2")
    add_in_place(held.model)
    with pytest.raises(ValueError, match="load its model anew"):
        Projection(held, SIZE)


def test_equal_seeds_give_equal_sketches(policy, tiny):
    _, _, found = tiny
    first = played(policy)[:2]
    again = sketches(policy, first, Projection(policy, SIZE), TEMPERATURE).astype(float)
    other = sketches(policy, first, Projection(policy, SIZE, seed=1), TEMPERATURE).astype(float)
    rows = found[: len(again)].astype(float)
    assert cosine(again.ravel(), rows.ravel()) == pytest.approx(1, abs=1e-5)
    assert abs(cosine(other.ravel(), rows.ravel())) < 0.5


def truth_of(rollouts, sketch, seed=0):
    rng = np.random.default_rng(seed)
    turns = TurnTable.from_rollouts(rollouts)
    chance = np.where(rng.random(len(turns)) < 0.5, 0.1, 0.9)[:, None]
    returns = (rng.random((len(turns), 48)) < chance).astype(float)
    known = np.arange(len(turns)) % 3
    return Truth(turns, returns, TruthOptions(48), known=known, sketch=sketch)


def test_true_credit_has_cosine_one_and_chance_about_none(tiny, tmp_path):
    rollouts, _, sketch = tiny
    truth = truth_of(rollouts, sketch)
    truth_sets.write(tmp_path / "truth.npz", TruthSet(truth, ("task",) * 4))
    kept = truth_sets.read(tmp_path / "truth.npz").truth
    assert (kept.sketch == sketch).all()
    assert (kept.known == truth.known).all()
    rng, least = np.random.default_rng(3), Minimum(0, 0)
    found = agreement.agree(kept, {"true": 5 * truth.advantage}, minimum=least)
    assert found.figures["true"]["gradient"].value == pytest.approx(1)
    assert found.figures["true"]["gradient"].interval == pytest.approx((1, 1))
    assert 0.8 < found.ceilings["gradient"] <= 1
    chance = [
        agreement.agree(kept, {"c": rng.normal(size=len(truth.turns))}, minimum=least)
        .figures["c"]["gradient"]
        .value
        for _ in range(30)
    ]
    assert abs(np.mean(chance)) < 3 * np.std(chance) / np.sqrt(30)


def test_the_ratio_of_signal_to_noise_by_hand():
    """Two groups of one task with gradients (3, 0) and (1, 2): 3 / ((9 + 5) / 2 - 3)."""
    turns = TurnTable.from_columns(rollout=[0, 1, 2], reward=[0.0] * 3, group=[0] * 3)
    sketch = np.array([[3, 0], [1, 0], [0, 1]], np.float16)
    truth = Truth(turns, np.zeros((3, 4)), TruthOptions(4), sketch=sketch)
    snr = spread.statistics(truth, np.array([0, 1, 1]))["snr"]
    assert snr(np.array([1.0, 1.0, 2.0]))(np.ones(1)) == pytest.approx(3 / (14 / 2 - 3))


def test_parts_keep_their_sketches(tiny):
    rollouts, _, sketch = tiny
    part, rows = take(truth_of(rollouts, sketch), np.array([3, 1]))
    assert (part.sketch == sketch[rows]).all()
    assert rows.tolist() == [6, 7, 2, 3]


def test_a_truth_without_gradients_is_read_as_before(tmp_path):
    truth, _ = truth_like(0)
    truth_sets.write(tmp_path / "truth.npz", TruthSet(truth, ("task",)))
    kept = truth_sets.read(tmp_path / "truth.npz").truth
    assert (kept.known, kept.sketch) == (None, None)
