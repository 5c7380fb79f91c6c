"""Log-probabilities and entropies of given tokens under a policy, without gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from harness.model.learning_mode import evaluating
from harness.model.packing import Sample, TokenBatch
from harness.model.policy import Policy
from harness.types.arrays import Floats


@dataclass(frozen=True, slots=True, eq=False)
class TokenScores:
    """Scores of a sample's action tokens, in order."""

    logprob: Floats  # log-probability of each token given all tokens before it, in nats. Shape [L].
    entropy: Floats  # entropy of the distribution of each token, in nats. Shape [L].


def score_tokens(
    policy: Policy, rows: Sequence[Sample], temperature: float = 1.0, max_tokens: int = 8192
) -> list[TokenScores]:
    """Return the policy's scores of each sample, in the given order, without gradients and dropout.

    Equal samples pass through the model once; processes share them. Temperature 0 counts as 1.
    """
    indices: dict[tuple[object, ...], int] = {}
    index = [indices.setdefault(_identity(row), len(indices)) for row in rows]
    first = dict(zip(reversed(index), reversed(rows), strict=True))
    distinct = [first[i] for i in range(len(indices))]
    scores: dict[int, TokenScores] = {}
    with evaluating(policy.model):
        for part, batch in policy.indexed_batches(distinct, max_tokens):
            found = _score(policy, batch, temperature)[: len(part)]
            scores.update(zip(part, found, strict=True))
    for others in policy.processes.gather(scores):
        scores |= others
    return [scores[i] for i in index]


def _identity(row: Sample) -> tuple[object, ...]:
    return row.images, row.prompt_ids, row.response_ids, row.turn


@torch.no_grad()
def _score(policy: Policy, batch: TokenBatch, temperature: float) -> list[TokenScores]:
    logprob, entropy = policy.logprobs(batch, temperature)
    masks = batch.action_mask.cpu().numpy()
    columns = zip(
        masks, logprob.double().cpu().numpy(), entropy.double().cpu().numpy(), strict=True
    )
    return [TokenScores(picked[mask], spread[mask]) for mask, picked, spread in columns]
