"""ProxMO: episode advantages scaled by difficulty, and baselines from states that read alike."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

from harness.credit.groups import distance, encode, group_mean, members, state_texts
from harness.credit.registry import estimator
from harness.credit.shared import EPISODE, Shared, with_shared
from harness.credit.table import TurnTable
from harness.types.arrays import Floats, Ints
from harness.types.hyperparameters import number

_WORD: Final = re.compile(r"\b\w\w+\b")


@estimator("proxmo", step_returns="reads")
@with_shared(*EPISODE, "gamma")
def proxmo(
    turns: TurnTable,
    shared: Shared,
    *,
    steepness: float = 4.0,
    strength: float = 0.1,
    temperature: float = 0.1,
    step_weight: float = 1.0,
) -> Floats:
    """Episode advantage, scaled by the group's success, plus a soft step advantage. Shape [N].

    A = w A_E + omega (R_t - B_t). With p the success rate of the group's rollouts and sigma the
    logistic function, w = 1 + beta (sigma((1 - p)^alpha) - 1/2) in a success, which is most in a
    hard task, and w = 1 + beta (sigma(-p^alpha) - 1/2) in a failure, which is least in an easy one.
    B_t is a mean of the returns R of all turns of the group, the turn's own among them, weighted by
    exp(similarity / tau); the similarity of two states is the cosine of their texts' TF-IDF
    vectors. R_t is the discounted return from the turn on, less the invalid penalty; A_E `grpo`.
    Reference: Fang et al. 2026, Proximity-Based Multi-Turn Optimization (ProxMO), arXiv:2602.19225,
    with w, vectors and weights as its released code computes them (core_proxmo.py).
    Departs from it: words are counted over the turns of the group, not of the batch, all of them,
    not the 1,024 most frequent ones; a state's text is that of `harness.credit.groups`.

    The code's functions have alpha 5, beta 0.866, and only centre A_E (`norm="mean"`) beside soft
    baselines; the defaults here are the paper's.

    Args:
        turns: The turn table; reads `success`, the states and their texts.
        shared: The settings of A_E, and of R_t.
        steepness: alpha, at least 0.
        strength: beta, at least 0; 0 leaves A_E as it is.
        temperature: tau, above 0: small ones compare equal texts alone, large ones all turns.
        step_weight: omega.
    """
    number("steepness", steepness, 0)
    number("strength", strength, 0)
    number("temperature", temperature, 1e-6)
    number("step_weight", step_weight)
    returns = shared.step_returns(turns)  # [N]
    baseline = soft_baselines(turns, returns, temperature)
    weight = 1.0 + strength * _polarity(turns, steepness)
    return weight * shared.episode(turns) + step_weight * distance(returns, baseline)


def _polarity(turns: TurnTable, steepness: float) -> Floats:
    """Return sigma(...) - 1/2 of each turn's rollout, in [-1/2, 1/2]. Shape [N]."""
    first = turns.starts
    group = encode(turns.group[first])
    rate = group_mean(turns.success[first].astype(np.float64), group)[turns.rollout]
    power = np.where(turns.success, 1.0 - rate, rate) ** steepness
    half: Floats = 0.5 * np.tanh(0.5 * np.where(turns.success, power, -power))
    return half


def soft_baselines(turns: TurnTable, returns: Floats, temperature: float) -> Floats:
    """Return B of each turn from R of each turn, with tau for `temperature`. Shapes [N] -> [N]."""
    state = encode(turns.group, turns.state_key)
    first = np.unique(state, return_index=True)[1]
    texts = state_texts(turns, state, first)
    visits = np.bincount(state).astype(np.float64)  # [S]
    total = np.bincount(state, weights=returns)
    baseline = np.zeros(len(first))
    for states in members(encode(turns.group[first])):
        vectors = tf_idf([texts[s] for s in states.tolist()], visits[states])
        # Sums of one order: a product of matrices would depend on the BLAS and its threads.
        cosine = np.einsum("iv,jv->ij", vectors, vectors)
        weight = np.exp((cosine - cosine.max(axis=1, keepdims=True)) / temperature)
        sums = ((weight * own[states]).sum(axis=1) for own in (total, visits))
        baseline[states] = np.divide(*sums)
    return baseline[state]


def tf_idf(texts: Sequence[str], count: Floats) -> Floats:
    """Return a vector of length 1 for each of S texts, or 0 for one without words. Shape [S, V].

    Entries are f (1 + ln((1 + n) / (1 + d))) before they are scaled: f times a word is in the text,
    in d of all n. Words have two letters at least; case does not matter. `count` says how often
    each text occurs.
    """
    words = [Counter(_WORD.findall(text.lower())) for text in texts]
    column = {word: i for i, word in enumerate(sorted(set().union(*words)))}
    rows: Ints = np.repeat(np.arange(len(texts)), [len(found) for found in words])
    columns = np.array([column[word] for found in words for word in found], dtype=np.int64)
    times = np.array([n for found in words for n in found.values()], dtype=np.float64)
    documents = np.bincount(columns, weights=count[rows], minlength=len(column))
    vectors = np.zeros((len(texts), len(column)))
    vectors[rows, columns] = times * (1 + np.log((1 + count.sum()) / (1 + documents[columns])))
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Floats = np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)
    return scaled
