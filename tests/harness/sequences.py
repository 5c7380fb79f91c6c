"""Training sequences for tests, by hand and by chance, and what a model might say of them."""

import numpy as np
import torch
from hypothesis import strategies as st

from harness.model.packing import Sample, micro_batches


def sample(prompt=3, response=2, advantage=1.0, old=-1.0):
    """One turn: prompt 0, 1, 2..., response 7, 8..."""
    return Sample(tuple(range(prompt)), tuple(range(7, 7 + response)), (old,) * response, advantage)


@st.composite
def turns(draw):
    return draw(
        st.builds(
            sample,
            prompt=st.integers(1, 6),
            response=st.integers(1, 5),
            advantage=st.sampled_from([-2.0, -0.5, 0.0, 1.0, 3.0]),
            old=st.sampled_from([-2.0, -1.0]),
        )
    )


@st.composite
def transcripts(draw):
    """Up to three turns, something from the environment between them, credit for each token."""
    sizes = draw(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=3))
    place = [k for i, (own, told) in enumerate(sizes) for k in [i] * own + [-1] * told]
    place = place[: len(place) - sizes[-1][1]]
    count = sum(k >= 0 for k in place)
    credit = st.sampled_from([-2.0, 0.0, 1.5])
    return Sample(
        tuple(range(draw(st.integers(1, 4)))),
        tuple(range(7, 7 + len(place))),
        draw(st.sampled_from([(-1.0,) * count, (-2.0,) * count])),
        tuple(draw(st.lists(credit, min_size=count, max_size=count))),
        turn=tuple(place),
    )


@st.composite
def branching_tokens(draw, most=12):
    """Token sequences that leave one stem at random places, with few tokens to choose from."""
    chance = np.random.default_rng(draw(st.integers(0, 10**6)))
    alphabet, count = draw(st.sampled_from([2, 300])), draw(st.integers(1, most))
    stem = chance.integers(0, alphabet, 40)
    made = []
    for _ in range(count):
        own = chance.integers(0, alphabet, chance.integers(2, 20))
        made.append(np.concatenate([stem[: chance.integers(0, 40)], own]))
    return made + made[: draw(st.integers(0, 2))]  # some twice


some_samples = st.lists(turns() | transcripts(), min_size=1, max_size=8)


def said(batch, weight):
    """Log-probabilities, reference's and entropies that depend on the tokens and a weight."""
    angle = batch.tokens.float()
    outside = torch.zeros(())
    return (
        torch.where(batch.action_mask, -1.2 - weight * torch.sin(angle), outside),
        torch.where(batch.action_mask, -1.1 - 0.2 * torch.cos(angle), outside),
        torch.where(batch.action_mask, 2.0 + weight * torch.cos(angle), outside),
    )


def in_parts(rows, compute, max_tokens):
    """The sum over micro-batches of `compute(batch, weight)`, and its derivative."""
    weight = torch.tensor(0.3, requires_grad=True)
    total = 0 * weight
    for batch in micro_batches(rows, max_tokens, pad_id=0):
        total = total + compute(batch, weight)
    total.backward()
    return float(total.detach()), float(weight.grad)
