"""Losses against numbers worked by hand, and what packing may not change."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from harness import losses
from harness.errors import ConfigError, TableError
from harness.losses.kl import k3
from harness.packing import Sample, merge, micro_batches, samples, to_batch
from harness.rollout import Completion, Rollout, Turn

clipped = losses.get("clipped")


def sample(prompt=3, response=2, advantage=1.0, old=-1.0):
    return Sample(tuple(range(prompt)), tuple(range(7, 7 + response)), (old,) * response, advantage)


def logprob_of(batch, value):
    return torch.where(batch.action_mask, torch.tensor(value), torch.tensor(0.0))


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
    loss, metrics = clipped(logprob_of(batch, new), batch)
    assert float(loss) == pytest.approx(expected, abs=1e-5)
    assert metrics["num_tokens"] == 2


def test_clip_higher_and_clipped_share():
    batch = to_batch([sample(advantage=2.0)], pad_id=0)
    logprob = logprob_of(batch, -1.0 + math.log(1.5))
    loss, metrics = clipped(logprob, batch, clip_high=0.28)
    assert float(loss) == pytest.approx(-2.56, abs=1e-5)
    assert metrics["clipped"] == 2


def test_the_mean_is_over_tokens_not_sequences():
    batch = to_batch(
        [sample(response=1, advantage=4.0), sample(response=3, advantage=0.0)], pad_id=0
    )
    loss, _ = clipped(logprob_of(batch, -1.0), batch)
    assert float(loss) == pytest.approx(-1.0)


def test_kl_by_hand_and_without_reference():
    # d = log p_ref - log p = 0.5: k3 = e^0.5 - 0.5 - 1.
    assert float(k3(torch.tensor(-1.0), torch.tensor(-0.5))) == pytest.approx(math.exp(0.5) - 1.5)
    batch = to_batch([sample(advantage=0.0)], pad_id=0)
    logprob = logprob_of(batch, -1.0)
    reference = logprob_of(batch, -0.5)
    loss, _ = clipped(
        logprob, replace(batch, reference_logprob=reference), kl_coefficient=0.1
    )
    assert float(loss) == pytest.approx(0.1 * (math.exp(0.5) - 1.5), abs=1e-6)
    with pytest.raises(ConfigError, match="needs a reference policy"):
        clipped(logprob, batch, kl_coefficient=0.1)


def test_unknown_losses_and_settings_are_refused():
    with pytest.raises(ConfigError, match="unknown loss 'ppo': expected one of clipped"):
        losses.get("ppo")
    with pytest.raises(ConfigError, match="no hyperparameter 'clip'"):
        losses.check("clipped", {"clip": 0.2})


rows_strategy = st.lists(
    st.builds(
        sample,
        prompt=st.integers(1, 6),
        response=st.integers(1, 5),
        advantage=st.sampled_from([-2.0, -0.5, 0.0, 1.0, 3.0]),
        old=st.sampled_from([-2.0, -1.0]),
    ),
    min_size=1,
    max_size=9,
)


def fake_logprob(batch, weight):
    """Log-probabilities that depend on tokens and a weight, as a model's would."""
    value = -1.2 - weight * torch.sin(batch.tokens.float())
    return torch.where(batch.action_mask, value, torch.zeros(()))


def loss_and_gradient(rows, max_tokens):
    weight = torch.tensor(0.3, requires_grad=True)
    num_tokens = sum(len(row.response_ids) for row in rows)
    total = sum(
        clipped(fake_logprob(batch, weight), batch, num_tokens=num_tokens)[0]
        for batch in micro_batches(rows, max_tokens, pad_id=0)
    )
    total.backward()
    return float(total.detach()), float(weight.grad)


@given(rows_strategy)
def test_padding_and_micro_batches_change_no_loss(rows):
    whole = loss_and_gradient(rows, 10_000)
    assert loss_and_gradient(rows, 12) == pytest.approx(whole, abs=1e-5)
    assert loss_and_gradient(rows[::-1], 30) == pytest.approx(whole, abs=1e-5)


@given(rows_strategy)
def test_merging_changes_neither_loss_nor_gradient(rows):
    rows = rows + rows
    num_tokens = sum(len(row.response_ids) for row in rows)

    def result(some):
        weight = torch.tensor(0.3, requires_grad=True)
        total = torch.zeros(()) + 0 * weight
        for batch in micro_batches(some, 40, pad_id=0):
            total = (
                total + clipped(fake_logprob(batch, weight), batch, num_tokens=num_tokens)[0]
            )
        total.backward()
        return float(total.detach()), float(weight.grad)

    merged = merge(rows)
    assert len(merged) <= len(rows) / 2 + 0.5
    assert result(merged) == pytest.approx(result(rows), abs=1e-5)


def test_samples_that_were_drawn_with_other_probabilities_stay_apart():
    row = sample(2, 2, 1.0)
    other = replace(row, old_logprobs=tuple(value - 0.01 for value in row.old_logprobs))
    assert len(merge([row, other])) == 2
    assert len(merge([row, row, replace(row, advantage=-1.0)])) == 2


def test_micro_batches_hold_every_sample_once_and_keep_the_limit():
    rows = [sample(prompt=p, response=r) for p in range(1, 9) for r in (1, 4)]
    batches = list(micro_batches(rows, 30, pad_id=0))
    assert sum(len(b.tokens) for b in batches) == len(rows)
    assert all(b.tokens.numel() <= 30 for b in batches)
    assert len(list(micro_batches(rows, 1, pad_id=0))) == len(rows)


def test_a_batch_by_hand():
    batch = to_batch([sample(2, 1, 5.0), sample(1, 1, -1.0)], pad_id=99)
    assert batch.tokens.tolist() == [[0, 1, 7], [0, 7, 99]]
    assert batch.action_mask.tolist() == [[False, False, True], [False, True, False]]
    assert batch.advantage.tolist() == [[0, 0, 5], [0, -1, 0]]


def turn(prompt_ids=(1,), response_ids=(2,)):
    said = Completion("x", prompt_ids, response_ids, (-1.0,) * len(response_ids))
    return Turn("o", "s", said, "x", "x", "ok", 0.0, "o", "s", 0.0)


def test_samples_follow_the_table_and_need_tokens():
    rollouts = [Rollout("t", "f", 0, i, 0, turns=[turn(), turn((3,), (4, 5))]) for i in range(2)]
    packed = samples(rollouts, np.array([1.0, 2.0, 3.0, 4.0]))
    assert [s.advantage for s in packed] == [1, 2, 3, 4]
    assert packed[1].response_ids == (4, 5)
    with pytest.raises(TableError, match="expected \\(4,\\)"):
        samples(rollouts, np.zeros(3))
    with pytest.raises(TableError, match="no tokens"):
        samples([Rollout("t", "f", 0, 0, 0, turns=[turn((), ())])], np.zeros(1))
