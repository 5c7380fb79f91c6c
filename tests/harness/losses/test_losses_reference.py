"""The policy loss against one written token by token, in float64."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from harness import losses
from harness.losses.aggregate import AGGREGATIONS
from harness.losses.surrogate import RATIOS
from harness.model.packing import TokenBatch

KL = {
    "k1": lambda x: x,
    "k2": lambda x: x * x / 2,
    "k3": lambda x: torch.exp(-x) + x - 1,
}


@st.composite
def batches(draw):
    """Up to three sequences, some without a token of the policy, turns that touch or do not."""
    sequences, width = draw(st.integers(1, 3)), draw(st.integers(2, 6))
    turn = torch.full((sequences, width), -1)
    for row in turn:
        number = 0
        for t in range(1, width):
            kind = draw(st.sampled_from(["own", "next", "told"]))
            if kind == "told":
                continue
            number += kind == "next" and bool((row == number).any())
            row[t] = number
    own = turn >= 0
    generator = torch.Generator().manual_seed(draw(st.integers(0, 999)))

    def normal():
        drawn = torch.randn(turn.shape, generator=generator, dtype=torch.float64)
        return torch.where(own, drawn, 0.0)

    advantage = torch.where(normal() > 1, 0.0, normal())
    reference, entropy = -normal().abs(), normal().abs()
    batch = TokenBatch(torch.zeros_like(turn), own, -normal().abs(), advantage, turn, reference)
    return batch, (batch.old_logprob + 0.4 * normal()), entropy


def ratio_of(batch, moved, i, t, how):
    """The ratio at token t of sequence i, with `moved` = log p - log p_old."""
    own = [u for u in range(moved.shape[1]) if batch.turn[i, u] >= 0]
    if how == "token":
        return moved[i, t].exp()
    if how == "turn":
        return sum(moved[i, u] for u in own if batch.turn[i, u] == batch.turn[i, t]).exp()
    mean = sum(moved[i, u] for u in own) / len(own)
    return mean.exp().detach() * (moved[i, t] - moved[i, t].detach()).exp()


def loss_of_token(batch, logprob, entropy, i, t, chosen):
    ratio = ratio_of(batch, logprob - batch.old_logprob, i, t, chosen["ratio"])
    credit, dual = batch.advantage[i, t], chosen["dual_clip"]
    near = ratio.clamp(1 - chosen["clip_low"], 1 + chosen["clip_high"])
    loss = torch.maximum(-credit * ratio, -credit * near)
    if dual is not None and credit < 0:
        loss = torch.minimum(loss, -credit * dual)
    divergence = KL[chosen["kl"]](logprob[i, t] - batch.reference_logprob[i, t])
    return (
        loss + chosen["kl_coefficient"] * divergence - chosen["entropy_coefficient"] * entropy[i, t]
    )


def naive(batch, logprob, entropy, chosen):
    rows = [
        [
            loss_of_token(batch, logprob, entropy, i, t, chosen)
            for t in range(logprob.shape[1])
            if batch.action_mask[i, t]
        ]
        for i in range(len(logprob))
    ]
    rows = [row for row in rows if row]
    total = 0 * logprob.sum()
    for row in rows:
        if chosen["aggregation"] == "token_mean":
            total = total + sum(row) / sum(map(len, rows))
        elif chosen["aggregation"] == "sequence_mean_token_mean":
            total = total + sum(row) / len(row) / len(rows)
        else:
            total = total + sum(row) / (chosen["constant"] or 1) / len(rows)
    return total


settings = st.fixed_dictionaries(
    {
        "ratio": st.sampled_from(RATIOS),
        "aggregation": st.sampled_from(AGGREGATIONS),
        "clip_low": st.sampled_from([0.0, 3e-4, 0.2, 1.0]),
        "clip_high": st.sampled_from([4e-4, 0.2, 0.28]),
        "dual_clip": st.sampled_from([None, 1.1, 3.0]),
        "constant": st.sampled_from([None, 5]),
        "kl": st.sampled_from(sorted(KL)),
        "kl_coefficient": st.sampled_from([0.0, 0.1]),
        "entropy_coefficient": st.sampled_from([0.0, 0.01]),
    }
)


@given(batches(), settings)
def test_the_loss_and_its_gradient_are_those_of_single_tokens(drawn, chosen):
    batch, logprob, entropy = drawn
    logprob.requires_grad_()
    got, _ = losses.get("clipped")(logprob, batch, entropy=entropy, **chosen)
    expected = naive(batch, logprob, entropy, chosen)
    assert got.item() == pytest.approx(expected.item(), abs=1e-9)
    gradients = [torch.autograd.grad(loss, logprob)[0] for loss in (got, expected)]
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-9)
