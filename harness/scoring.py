"""What a policy says of tokens that are given: log-probabilities and entropies, nothing trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from harness.credit.table import Floats
from harness.packing import Sample, TokenBatch
from harness.policy import Policy


@dataclass(frozen=True, slots=True, eq=False)
class TokenScores:
    """Scores of a sample's own tokens, in order; those of the environment have none.

    Attributes:
        logprob: Log-probability of each token given all before it, in nats. Shape [L].
        entropy: Of the distribution at each token, in nats. Shape [L].
    """

    logprob: Floats
    entropy: Floats


def score(
    policy: Policy, rows: Sequence[Sample], temperature: float = 1.0, max_tokens: int = 8192
) -> list[TokenScores]:
    """Return the policy's scores of each sample, in the order given and without gradient.

    Samples of equal tokens and images pass through the model once. The policy is in evaluation mode
    meanwhile, so that dropout is off. Several processes deal the samples among them and exchange
    what they find.

    Args:
        policy: Not changed.
        rows: Their `old_logprobs` and `advantage` do not matter.
        temperature: Of the distributions scored; 0 counts as 1.
        max_tokens: Padded tokens of one forward pass.
    """
    places: dict[tuple[object, ...], int] = {}
    place = [places.setdefault(_identity(row), len(places)) for row in rows]
    first = dict(zip(reversed(place), reversed(rows), strict=True))
    distinct = [first[i] for i in range(len(places))]
    scores: dict[int, TokenScores] = {}
    was_training = policy.model.training
    policy.model.eval()
    try:
        for part, batch in policy.placed_batches(distinct, max_tokens):
            told = _score(policy, batch, temperature)[: len(part)]
            scores.update(zip(part, told, strict=True))
    finally:
        policy.model.train(was_training)
    for others in policy.ranks.gather(scores):
        scores |= others
    return [scores[i] for i in place]


def _identity(row: Sample) -> tuple[object, ...]:
    return row.images, row.prompt_ids, row.response_ids, row.turn


@torch.no_grad()
def _score(policy: Policy, batch: TokenBatch, temperature: float) -> list[TokenScores]:
    logprob, entropy = policy.logprobs(batch, temperature)
    masks = batch.action_mask.cpu().numpy()
    columns = zip(
        masks, logprob.double().cpu().numpy(), entropy.double().cpu().numpy(), strict=True
    )
    return [TokenScores(told[mask], spread[mask]) for mask, told, spread in columns]
