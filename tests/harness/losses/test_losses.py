"""Losses against numbers worked by hand, and identities between their choices."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sequences import in_parts, said, sample, some_samples

from harness import losses
from harness.losses.aggregate import AGGREGATIONS, Metric, Reduction, aggregate
from harness.losses.surrogate import (
    ESTIMATORS,
    RATIOS,
    clipped_share,
    clipped_surrogate,
    importance_ratio,
    k1,
    k2,
    k3,
)
from harness.losses.value import value_loss
from harness.model.packing import Sample, merge, to_batch
from harness.training.learner import combine
from harness.types.errors import ConfigError

clipped, nll = losses.get("clipped"), losses.get("nll")


def logprob_of(batch, value):
    return torch.where(batch.action_mask, torch.tensor(value), torch.tensor(0.0))


def two_turns(advantage=1.0):
    """A transcript: two tokens, one of the environment, three tokens; old log-probability -1."""
    return Sample((1,), (7, 8, 0, 9, 10, 11), (-1.0,) * 5, advantage, turn=(0, 0, -1, 1, 1, 1))


def moved(batch, *steps):
    """Log-probabilities that differ from the old ones by `steps`, token for token."""
    logprob = batch.old_logprob.clone()
    logprob[batch.action_mask] += torch.tensor(steps)
    return logprob.requires_grad_()


@pytest.mark.parametrize(
    ("new", "advantage", "expected"),
    [
        (-1.0, 2.0, -2.0),  # ratio 1
        (-1.0 + math.log(1.1), 2.0, -2.2),  # inside the clip range
        (-1.0 + math.log(1.5), 2.0, -2.4),  # clipped at 1.2
        (-1.0 + math.log(1.5), -2.0, 3.0),  # a bad action that became likelier: not clipped
        (-1.0 + math.log(0.5), -2.0, 1.6),  # clipped at 0.8
        (-1.0 + math.log(0.5), 2.0, -1.0),  # a good action that became rarer: not clipped
    ],
)
def test_clipped_by_hand(new, advantage, expected):
    batch = to_batch([sample(advantage=advantage)], pad_id=0)
    loss, figures = clipped(logprob_of(batch, new), batch)
    assert loss.item() == pytest.approx(expected, abs=1e-5)
    assert figures["ratio_max"] == Metric(pytest.approx(math.exp(new + 1)), Reduction.MAX)


def test_clip_higher_and_clipped_share():
    batch = to_batch([sample(advantage=2.0)], pad_id=0)
    logprob = logprob_of(batch, -1.0 + math.log(1.5))
    loss, figures = clipped(logprob, batch, clip_high=0.28)
    assert loss.item() == pytest.approx(-2.56, abs=1e-5)
    assert figures["clipped_share"] == Metric(2)


@pytest.mark.parametrize(
    ("ratio", "advantage", "expected", "stopped"),
    [
        (5.0, -2.0, 6.0, 2),  # at most 3 times a bad advantage
        (2.5, -2.0, 5.0, 0),  # as without
        (5.0, 2.0, -2.4, 2),  # good advantages know no third bound
        (0.5, -2.0, 1.6, 2),  # the lower clip stays
    ],
)
def test_dual_clip_by_hand(ratio, advantage, expected, stopped):
    batch = to_batch([sample(advantage=advantage)], pad_id=0)
    logprob = logprob_of(batch, -1.0 + math.log(ratio)).requires_grad_()
    loss, figures = clipped(logprob, batch, dual_clip=3.0)
    loss.backward()
    assert loss.item() == pytest.approx(expected, abs=1e-5)
    assert figures["clipped_share"] == Metric(stopped)
    assert bool(logprob.grad.any()) == (stopped == 0)


@pytest.mark.parametrize("dual", [None, 4.0])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_clipped_share_is_where_the_gradient_stops(sign, dual):
    """A ratio that stands at a bound itself still has a gradient."""
    ratio = torch.tensor([0.25, 0.5, 1.0, 1.5, 2.0, 4.0, 8.0], requires_grad=True)
    advantage = torch.full_like(ratio, sign)
    slope = gradient(ratio, clipped_surrogate(ratio, advantage, 0.5, 0.5, dual).sum())
    stopped = clipped_share(ratio, advantage, 0.5, 0.5, dual)
    assert stopped.tolist() == (slope == 0).tolist()
    assert stopped.any()


def test_aggregations_by_hand():
    """Two sequences of one and of three tokens."""
    x = torch.tensor([[9.0, 4.0, 9.0, 9.0], [9.0, 1.0, 2.0, 6.0]])
    mask = torch.tensor([[False, True, False, False], [False, True, True, True]])
    assert float(aggregate(x, mask)) == 13 / 4
    assert float(aggregate(x, mask, "sequence_mean_token_mean")) == (4 + 3) / 2
    assert float(aggregate(x, mask, "sequence_mean_token_sum")) == (4 + 9) / 2
    assert float(aggregate(x, mask, "sequence_mean_token_sum", constant=8.0)) == (4 + 9) / 16
    assert float(aggregate(x, mask, num_tokens=26)) == 13 / 26
    filled, own = torch.cat([x, x]), torch.cat([mask, torch.zeros_like(mask)])
    for how in AGGREGATIONS:
        assert aggregate(filled, own, how) == aggregate(x, mask, how), "rows that fill up"
    assert float(aggregate(x, mask, "sequence_mean_token_mean", num_sequences=14)) == 7 / 14


def test_ratios_by_hand():
    batch = to_batch([two_turns(), sample(1, 2)], pad_id=0)
    steps = (0.1, 0.2, -0.3, 0.1, 0.5, 0.4, -0.2)
    logprob = moved(batch, *steps)
    got = {how: importance_ratio(logprob, batch.old_logprob, batch.turn, how) for how in RATIOS}
    for how, logs in {
        "token": steps,
        "turn": (0.3, 0.3, 0.3, 0.3, 0.3, 0.2, 0.2),
        "sequence": (0.12,) * 5 + (0.1,) * 2,
    }.items():
        expected = torch.tensor(logs).exp()
        torch.testing.assert_close(got[how][batch.action_mask], expected)
        assert (got[how][~batch.action_mask] == 1).all()


@given(some_samples)
def test_ratios_agree_where_they_must(rows):
    """Of one token: all. Of one turn: the turn's is the sequence's to the power of its length."""
    batch = to_batch([replace(row, turn=()) if not row.turn else row for row in rows], pad_id=0)
    logprob, _, _ = said(batch, torch.tensor(0.3))
    token, turn, sequence = (
        importance_ratio(logprob, batch.old_logprob, batch.turn, how) for how in RATIOS
    )
    for i, row in enumerate(rows):
        own = batch.action_mask[i]
        if row.num_actions == 1:
            torch.testing.assert_close(token[i], turn[i])
            torch.testing.assert_close(token[i], sequence[i])
        if len(set(row.turn) - {-1}) <= 1:
            torch.testing.assert_close(turn[i][own], sequence[i][own] ** row.num_actions)


def test_ratios_do_not_overflow():
    batch = to_batch([sample(advantage=1.0), sample(advantage=-1.0)], pad_id=0)
    logprob = moved(batch, 150.0, 150.0, 150.0, 150.0)
    loss, figures = clipped(logprob, batch, ratio="turn")
    loss.backward()
    assert torch.isfinite(logprob.grad).all()
    assert math.isfinite(figures["ratio_max"].value)


def gradient(logprob, loss):
    (found,) = torch.autograd.grad(loss, logprob, retain_graph=True)
    return found


def test_the_sequence_ratio_has_gspos_gradient():
    """For one advantage a sequence: that of mean_i min(s_i A_i, clip(s_i) A_i), written plainly."""
    rows = [two_turns(2.0), sample(2, 3, -1.0), sample(2, 4, 1.0)]
    batch = to_batch(rows, pad_id=0)
    logprob = moved(batch, *(0.02, -0.01, 0.03, 0.0, 0.01), *(0.02, 0.1, 0.0), *(0.5,) * 4)
    loss, figures = clipped(
        logprob, batch, ratio="sequence", aggregation="sequence_mean_token_mean"
    )
    length = batch.action_mask.sum(-1)
    s = ((logprob - batch.old_logprob) * batch.action_mask).sum(-1).div(length).exp()
    advantage = torch.tensor([2.0, -1.0, 1.0])
    plain = -torch.minimum(s * advantage, s.clamp(0.8, 1.2) * advantage).mean()
    assert loss.item() == pytest.approx(plain.item())
    torch.testing.assert_close(gradient(logprob, loss), gradient(logprob, plain))
    assert figures["clipped_share"] == Metric(4)


def test_the_sequence_ratio_gives_each_token_its_own_advantage():
    """The gradient at token t is -s A_t / L / B, that of the token-level variant."""
    advantage = (1.0, -2.0, 0.0, 4.0, 0.5)
    batch = to_batch([replace(two_turns(), advantage=advantage)], pad_id=0)
    logprob = moved(batch, 0.02, -0.01, 0.03, 0.0, 0.01)
    loss, _ = clipped(logprob, batch, ratio="sequence", aggregation="sequence_mean_token_mean")
    s = math.exp(0.05 / 5)
    expected = torch.tensor([-s * a / 5 for a in advantage])
    torch.testing.assert_close(gradient(logprob, loss)[batch.action_mask], expected)


def test_the_turn_ratio_is_oprls_objective():
    """In the context "window": the mean over turns of min(rho A, clip(rho) A), rho of actions."""
    batch = to_batch([sample(2, 3, 2.0), sample(4, 1, -1.0), sample(1, 2, 1.0)], pad_id=0)
    logprob = moved(batch, 0.05, 0.02, -0.03, 0.1, 0.3, 0.2)
    loss, _ = clipped(logprob, batch, ratio="turn", aggregation="sequence_mean_token_mean")
    rho = ((logprob - batch.old_logprob) * batch.action_mask).sum(-1).exp()
    advantage = torch.tensor([2.0, -1.0, 1.0])
    plain = -torch.minimum(rho * advantage, rho.clamp(0.8, 1.2) * advantage).mean()
    assert loss.item() == pytest.approx(plain.item())
    torch.testing.assert_close(gradient(logprob, loss), gradient(logprob, plain))


def test_kl_by_hand_and_without_reference():
    p, q = torch.tensor(-1.0), torch.tensor(-0.5)
    assert float(k1(p, q)) == -0.5
    assert float(k2(p, q)) == 0.125
    assert float(k3(p, q)) == pytest.approx(math.exp(0.5) - 1.5)
    batch = to_batch([sample(advantage=0.0)], pad_id=0)
    logprob = logprob_of(batch, -1.0)
    known = replace(batch, reference_logprob=logprob_of(batch, -0.5))
    for kind, estimate in ESTIMATORS.items():
        loss, figures = clipped(logprob, known, kl=kind, kl_coefficient=0.1)
        assert loss.item() == pytest.approx(0.1 * float(estimate(p, q)), abs=1e-6)
        assert figures["kl_reference"].value == pytest.approx(2 * float(estimate(p, q)))
    with pytest.raises(ConfigError, match="needs a reference policy"):
        clipped(logprob, batch, kl_coefficient=0.1)


def test_k2_and_k3_pull_towards_the_reference_and_k1_does_not():
    """In the mean over tokens of p; three tokens, exact."""
    weight = torch.tensor([0.3, -0.2, 0.5], requires_grad=True)
    reference = torch.log_softmax(torch.tensor([0.0, 1.0, 0.2]), -1)
    logprob = torch.log_softmax(weight, -1)
    probability = logprob.exp().detach()
    divergence = (logprob.exp() * (logprob - reference)).sum()
    mean = {kind: (probability * f(logprob, reference)).sum() for kind, f in ESTIMATORS.items()}
    assert mean["k1"].item() == pytest.approx(divergence.item())
    assert mean["k3"].item() == pytest.approx(divergence.item())
    true = gradient(weight, divergence)
    torch.testing.assert_close(gradient(weight, mean["k1"]), torch.zeros(3))
    torch.testing.assert_close(gradient(weight, mean["k2"]), true)
    assert float(gradient(weight, mean["k3"]) @ true) > 0


def test_the_entropy_bonus_is_trained_on():
    batch = to_batch([sample(advantage=0.0), sample(2, 1, 0.0)], pad_id=0)
    logits = torch.tensor([[0.0, 2.0, 1.0]] * 3, requires_grad=True)
    distribution = logits.log_softmax(-1)
    entropy = torch.zeros(batch.tokens.shape)
    entropy[batch.action_mask] = -(distribution.exp() * distribution).sum(-1)
    loss, _ = clipped(batch.old_logprob, batch, entropy_coefficient=0.5, entropy=entropy)
    assert loss.item() == pytest.approx(-0.5 * entropy.sum().item() / 3)
    after = (logits - 0.1 * gradient(logits, loss)).log_softmax(-1)
    assert (-(after.exp() * after).sum(-1) > entropy[batch.action_mask]).all()
    with pytest.raises(ConfigError, match="needs the entropies"):
        clipped(batch.old_logprob, batch, entropy_coefficient=0.5)


def test_metrics_of_batches_are_combined_as_they_say():
    metrics = {"a": Metric(1.0), "b": Metric(2.0, Reduction.MAX)}
    combine(metrics, {"a": Metric(2.0), "b": Metric(1.5, Reduction.MAX), "c": Metric(5.0)})
    assert {name: metric.reduced(10) for name, metric in metrics.items()} == {
        "a": 0.3,
        "b": 2.0,
        "c": 0.5,
    }


def test_nll_by_hand():
    batch = to_batch([sample(2, 1, 1.0), sample(2, 2, 0.5), sample(2, 1, 0.0)], pad_id=0)
    logprob = logprob_of(batch, -2.0)
    loss, figures = nll(logprob, batch)
    assert loss.item() == (2 + 2 * 1) / 4
    assert figures == {"nll": Metric(8)}
    loss, _ = nll(logprob, batch, aggregation="sequence_mean_token_mean")
    assert loss.item() == pytest.approx((2 + 1) / 3)


@pytest.mark.parametrize(("sign", "level"), [(1, 0.0), (1, 2.5), (1, -4.0), (-1, 0.0), (-1, 2.5)])
def test_value_loss_by_hand(sign, level):
    """Only differences count: neither the level of all three changes the loss, nor their sign."""
    old = sign * torch.tensor([0.0, 0.0, 0.0, 5.0]) + level
    value = (sign * torch.tensor([0.1, 0.5, -0.5, 9.0]) + level).requires_grad_()
    returns = sign * torch.tensor([1.0, 1.0, 1.0, 0.0]) + level
    mask = torch.tensor([True, True, True, False])
    loss = value_loss(value, old, returns, mask, 0.2)
    assert loss.item() == pytest.approx((0.81 + 0.64 + 2.25) / 6)
    step = gradient(value, loss)
    torch.testing.assert_close(step, sign * torch.tensor([-0.3, 0.0, -0.5, 0.0]))
    free = value_loss(value, old, returns, mask, None, num_values=6)
    assert free.item() == pytest.approx((0.81 + 0.25 + 2.25) / 12)
    for clip in (0.0, -1.0, "much"):
        with pytest.raises(ConfigError, match="clip must be"):
            value_loss(value, old, returns, mask, clip)


PENALTIES = st.sampled_from(
    [{}, {"kl": "k2", "kl_coefficient": 0.2}, {"kl_coefficient": 0.1, "entropy_coefficient": 0.3}]
)
CHOICES = st.fixed_dictionaries(
    {
        "ratio": st.sampled_from(RATIOS),
        "aggregation": st.sampled_from(AGGREGATIONS),
        "constant": st.sampled_from([None, 7.0]),
        "dual_clip": st.sampled_from([None, 3.0]),
        "clip_high": st.sampled_from([0.2, 0.28]),
    }
)


def of_mini_batch(rows, settings):
    """The loss of any part of a mini-batch."""
    whole = {"num_tokens": sum(row.num_actions for row in rows), "num_sequences": len(rows)}

    def compute(batch, weight):
        logprob, reference, entropy = said(batch, weight)
        batch = replace(batch, reference_logprob=reference)
        return clipped(logprob, batch, entropy=entropy, **settings, **whole)[0]

    return compute


@given(some_samples, CHOICES, PENALTIES)
def test_padding_and_micro_batches_change_no_loss(rows, choices, penalties):
    compute = of_mini_batch(rows, {**choices, **penalties})
    whole = in_parts(rows, compute, 10_000)
    assert in_parts(rows, compute, 12) == pytest.approx(whole, rel=1e-4, abs=1e-5)
    assert in_parts(rows[::-1], compute, 30) == pytest.approx(whole, rel=1e-4, abs=1e-5)


@given(some_samples, CHOICES)
def test_merging_changes_neither_loss_nor_gradient(rows, choices):
    assert losses.is_linear("clipped", choices)
    rows = rows + rows
    compute = of_mini_batch(rows, choices)
    merged = merge(rows)
    assert len(merged) <= len(rows) / 2
    expected = in_parts(rows, compute, 40)
    assert in_parts(merged, compute, 40) == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_which_losses_are_linear_in_the_advantage():
    assert losses.is_linear("nll", {})
    assert losses.is_linear("clipped", {"kl_coefficient": 0.0, "ratio": "sequence"})
    assert not losses.is_linear("clipped", {"kl_coefficient": 0.1})
    assert not losses.is_linear("clipped", {"entropy_coefficient": 0.1})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"clip": 0.2}, "no hyperparameter 'clip'"),
        ({"num_tokens": 3}, "no hyperparameter 'num_tokens'"),
        ({"ratio": "group"}, "ratio must be one of 'token', 'turn', 'sequence', got 'group'"),
        ({"aggregation": "mean"}, "aggregation must be one of 'token_mean'"),
        ({"kl": "k4"}, "kl must be one of 'k1', 'k2', 'k3'"),
        ({"kl_coefficient": -0.1}, "kl_coefficient must be a number of at least 0"),
        ({"entropy_coefficient": math.nan}, "entropy_coefficient must be a number"),
        ({"clip_low": 1.5}, r"clip_low must be a number in \[0, 1\]"),
        ({"clip_high": "0.2"}, "clip_high must be a number of at least 0"),
        ({"dual_clip": 0.5}, "dual_clip must be a number of at least 1"),
        ({"constant": 0}, "constant must be a number of at least 1"),
    ],
)
def test_unknown_losses_and_settings_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        losses.check("clipped", settings)


@pytest.mark.parametrize(
    "name", ["harness.losses.surrogate:RATIOS", "harness.losses.aggregate:Metric"]
)
def test_a_plug_in_that_is_no_function_is_no_loss(name):
    with pytest.raises(ConfigError, match=f"'{name}' is no loss: it is"):
        losses.get(name)


def test_settings_that_fit_are_not_refused():
    losses.check("clipped", {"kl_coefficient": 1, "entropy_coefficient": 0.1, "dual_clip": 3})
    losses.check("nll", {"aggregation": "sequence_mean_token_mean"})
    with pytest.raises(ConfigError, match="unknown loss 'ppo': expected one of clipped, nll"):
        losses.get("ppo")
