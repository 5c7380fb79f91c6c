"""Corrections of the mismatch with the sampler, against plain Python."""

import math

import pytest
import torch

from harness import config as configs
from harness import losses
from harness.config.rollout_settings import Correction
from harness.losses.mismatch import UpdateCorrection, kept, out_of_bounds, weights
from harness.model.packing import Sample, to_batch
from harness.types.errors import ConfigError

RATIOS = [0.1, 0.5, 0.99, 1.0, 1.7, 2.0, 2.01, 40.0]


def tis(ratio, cap):
    return min(ratio, cap)


def mis(ratio, cap):
    return ratio if ratio <= cap else 0.0


def icepop(ratio, low, high):
    return ratio if low <= ratio <= high else 0.0


@pytest.mark.parametrize(
    ("settings", "reference"),
    [
        ({}, lambda r: 1.0),
        ({"cap": 2.0}, lambda r: tis(r, 2.0)),
        ({"cap": 2.0, "masks": True}, lambda r: mis(r, 2.0)),
        (
            {"cap": 5.0, "floor": 0.5, "masks": True},
            lambda r: icepop(r, 0.5, 5.0),
        ),
    ],
)
def test_weights_are_those_of_the_papers(settings, reference):
    config = Correction(**settings)
    ratio = torch.tensor(RATIOS, dtype=torch.float64)
    assert weights(ratio, config).tolist() == [reference(r) for r in RATIOS]
    assert out_of_bounds(ratio, config).tolist() == [
        "cap" in settings and r != min(max(r, low), high)
        for r in RATIOS
        for low, high in [(settings.get("floor", 0), settings.get("cap", 0))]
    ]


UNITS = [[0.01, -0.02, 0.03], [0.5], [-0.3, -0.3, -0.2], [2e-4, 4e-4], [0.7, -0.7]]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"ratio": "geometric", "low": 0.999, "high": 1.001}, [False, False, False, True, True]),
        ({"ratio": "geometric", "low": 0.7, "high": 1.2}, [True, False, True, True, True]),
        ({"ratio": "product", "low": 0.5, "high": 1.5}, [True, False, False, True, True]),
        ({"ratio": "product", "low": 0.0, "high": 1.001}, [False, False, True, True, True]),
    ],
)
def test_units_are_rejected_by_their_ratio(settings, expected):
    config = Correction(unit="turn", **settings)
    unit = torch.tensor([i for i, tokens in enumerate(UNITS) for _ in tokens])
    found = kept(
        torch.tensor([d for tokens in UNITS for d in tokens], dtype=torch.float64), unit, config
    ).tolist()
    plain = []
    for tokens in UNITS:
        ratio = math.prod(math.exp(d) for d in tokens)
        if settings["ratio"] == "geometric":
            ratio **= 1 / len(tokens)
        plain.append(settings["low"] <= ratio <= settings["high"])
    assert found == plain == expected


def test_bounds_are_kept_themselves():
    log_ratio, unit = torch.zeros(3), torch.tensor([0, 0, 1])
    for low, high in ((1.0, 2.0), (0.5, 1.0)):
        config = Correction(unit="turn", low=low, high=high)
        assert kept(log_ratio, unit, config).tolist() == [True, True]


def test_a_product_beyond_every_float_is_rejected_and_nothing_overflows():
    config = Correction(unit="turn", ratio="product", low=0.5, high=2.0)
    log_ratio = torch.tensor([900.0, -900.0, 0.1])
    assert kept(log_ratio, torch.tensor([0, 1, 2]), config).tolist() == [False, False, True]


def example():
    """Two sequences, the first with two turns, and log-probabilities under the new policy."""
    rows = [
        Sample((1, 2), (3, 4, 5, 6), (-1.0, -2.0, -0.5), (1.0, 1.0, -2.0), turn=(0, 0, -1, 1)),
        Sample((1,), (3, 4), (-1.0, -1.0), -1.0),
    ]
    batch = to_batch(rows, pad_id=0)
    change = torch.tensor([[0, 0, 0.9, -0.1, 0, 0.2], [0, 1.2, -0.9, 0, 0, 0]])
    logprob = (batch.old_logprob + change * batch.action_mask).requires_grad_()
    return batch, change, logprob


def gradient(batch, logprob, correction, **settings):
    corrected, metrics = correction.apply(logprob.detach(), batch)
    loss, _ = losses.get("clipped")(logprob, corrected, clip_low=0.99, clip_high=99.0, **settings)
    (found,) = torch.autograd.grad(loss, logprob)
    return found, metrics


@pytest.mark.parametrize(
    ("settings", "reference"),
    [
        ({"cap": 2.0}, lambda r: tis(r, 2.0)),
        ({"cap": 2.0, "masks": True}, lambda r: mis(r, 2.0)),
        (
            {"cap": 2.4, "floor": 0.5, "masks": True},
            lambda r: icepop(r, 0.5, 2.4),
        ),
        ({}, lambda r: r),
    ],
)
def test_in_the_update_the_gradient_is_that_of_a_weighted_policy_gradient(settings, reference):
    """w(r) A grad log pi, where the clip is out of the way; without weights w(r) is r."""
    batch, change, logprob = example()
    found, metrics = gradient(batch, logprob, UpdateCorrection(Correction(**settings)))
    mask = batch.action_mask
    weight = torch.tensor([[reference(math.exp(d)) for d in row] for row in change.tolist()])
    expected = -weight * batch.advantage * mask / mask.sum()
    torch.testing.assert_close(found, expected)
    mean = float((weight * mask).sum())
    assert metrics["mismatch_weight"].value == pytest.approx(mean)


@pytest.mark.parametrize(
    ("unit", "spans"),
    [("turn", [(2, 4, 0), (5, 6, 0), (1, 3, 1)]), ("sequence", [(2, 6, 0), (1, 3, 1)])],
)
def test_in_the_update_rejected_tokens_have_no_gradient(unit, spans):
    batch, change, logprob = example()
    bounds = {"turn": (0.8, 1.25), "sequence": (0.8, 1.3)}[unit]
    config = Correction(unit=unit, low=bounds[0], high=bounds[1])
    found, metrics = gradient(batch, logprob, UpdateCorrection(config))
    expected, rejected = torch.zeros_like(found), 0
    for start, end, row in spans:
        tokens = [t for t in range(start, end) if batch.action_mask[row, t]]
        ratio = math.exp(sum(float(change[row, t]) for t in tokens) / len(tokens))
        for t in tokens:
            if bounds[0] <= ratio <= bounds[1]:
                own = math.exp(float(change[row, t])) * float(batch.advantage[row, t])
                expected[row, t] = -own / 5
            else:
                rejected += 1
    assert 0 < rejected < 5
    torch.testing.assert_close(found, expected)
    assert metrics["mismatch_rejected_share"].value == rejected


def test_in_the_update_bounds_are_on_the_losss_own_ratio():
    batch, _, logprob = example()
    config = Correction(cap=1.5)
    corrected, metrics = UpdateCorrection(config, "turn").apply(logprob.detach(), batch)
    of_turn = [math.exp(0.8), math.exp(0.2), math.exp(0.3)]
    factor = [min(r, 1.5) / r for r in of_turn]
    expected = [[0, 0, factor[0], factor[0], 0, factor[1]], [0, factor[2], factor[2], 0, 0, 0]]
    torch.testing.assert_close(
        corrected.advantage, torch.tensor(expected, dtype=torch.float32) * batch.advantage
    )
    assert metrics["mismatch_capped_share"].value == 2


@pytest.mark.parametrize(
    ("rollout", "words"),
    [
        ({"correction": "clip", "correction_bounds": {"low": 0.5}}, "no 'low' .* one of cap"),
        ({"correction": "none", "correction_bounds": {"cap": 2.0}}, "'none': leave it out"),
        ({"correction": "clip", "correction_bounds": {"cap": 0}}, "greater than 0"),
        ({"correction": "clip", "correction_bounds": {"cap": "x"}}, "cap must be a number"),
        ({"correction": "reject", "correction_bounds": {"unit": "word"}}, "'token', 'turn', 'seq"),
        (
            {"correction": "reject", "correction_bounds": {"low": 2.0, "high": 1.0}},
            "all would be rejected",
        ),
        ({"mismatch_cap": 2.0}, "use rollout.correction_bounds.cap"),
        ({"rejection": {"unit": "turn"}}, 'use rollout.correction = "reject"'),
    ],
)
def test_settings_that_contradict_each_other_are_refused(rollout, words):
    values = configs.to_dict(configs.load("corridor-tiny"))
    values["rollout"] |= rollout
    with pytest.raises(ConfigError, match=words):
        configs.check(configs.from_dict(values))
