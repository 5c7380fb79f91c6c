"""SALT: steps that several rollouts share get the mean of their advantages."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from harness.credit.groups import encode, group_mean, group_size, label_mean, members
from harness.credit.registry import Base, base_estimator, estimator
from harness.credit.similarity import Matrix, checked, pure_scorer
from harness.credit.table import TurnTable
from harness.types.arrays import Bools, Floats, Ints
from harness.types.hyperparameters import integer, number, one_of

Average = Literal["occurrence", "distinct"]
Match = str | Matrix


@estimator("salt")
def salt(
    turns: TurnTable,
    *,
    history: int = 3,
    average: Average = "occurrence",
    match: Match = "exact",
    threshold: float = 0.9,
    base: Base = "grpo",
    **settings: Any,
) -> Floats:
    """Base's advantage, averaged over turns of one edge of the trajectory graph. Shape [N].

    The edge of turn t is (s_{t-1}, a_t, s_t); the state s_t is the last h pairs (a, o) of an action
    and what it led to, or all of them while there are fewer, and the task itself before the first.
    Edges of one group that agree in all three are merged, and each of their turns gets the mean of
    their advantages (Eq. 7). Turns whose edge occurs once keep the base's advantage.
    Reference: Li et al., SALT, sections 3.1 and 3.2 (Eqs. 4 to 7) and Algorithm 1; appendix B.2 for
    AppWorld.

    Open in the paper:

    - `history`: Tables 4 and 5 set 3 for every benchmark; Figure 7 finds 1 too coarse, 2 and 3
      best, 5 too strict.
    - `average`: Eq. 7 and line 13 of Algorithm 1 count every occurrence, so that a rollout which
      repeats an edge weighs more; `distinct` counts each rollout once.
    - `threshold`: predefined, but not given (B.2); 0.9 is a choice.
    - Matching by embeddings: each pair of state and action is encoded, and two steps are the same
      when the cosine similarity exceeds the threshold (B.2). That is no equivalence relation. Here
      pairs are the same when a chain of similar pairs of the group links them, so the result
      depends on no order.

    Departs from it: pairs are made of the environment's keys, `action_key` and `next_state_key`; a
    scorer reads `text`, which is action and observation.

    Args:
        turns: The turn table; reads keys of states and actions, or texts.
        history: h, the pairs that make a state; at least 1.
        average: `occurrence` or `distinct`; see above.
        match: `exact` compares keys. A scorer, or the name of one that needs no model
            (`lexical`), compares the texts of each group; for T distinct ones it scores T^2 pairs.
        threshold: The similarity that texts of the same pair exceed, in [0, 1]; for a scorer alone.
        base: The estimator of the advantages to average. The paper's are `grpo` and `rloo`.
        settings: The hyperparameters of the base.
    """
    one_of("average", average, ("occurrence", "distinct"))
    edge = edges(turns, history=history, match=match, threshold=threshold)
    advantage = base_estimator(base, settings)(turns)
    if not len(turns):
        return advantage
    if average == "occurrence":
        mean = group_mean(advantage, edge)
    else:
        share = encode(edge, turns.rollout)  # the turns of one rollout on one edge
        first = np.unique(share, return_index=True)[1]
        mean = label_mean(group_mean(advantage, share)[first], edge[first])[edge]
    return np.where(group_size(edge) > 1, mean, advantage)


def merged(
    turns: TurnTable, history: int = 3, *, match: Match = "exact", threshold: float = 0.9
) -> list[Ints]:
    """Return the rows of each merged edge: two or more each, in the order of their first rows.

    The arguments are those of `salt`.
    """
    edge = edges(turns, history=history, match=match, threshold=threshold)
    return sorted((rows for rows in members(edge) if len(rows) > 1), key=lambda rows: int(rows[0]))


def edges(
    turns: TurnTable, *, history: int = 3, match: Match = "exact", threshold: float = 0.9
) -> Ints:
    """Return the edge of each turn as a label: equal labels are one edge. Shape [N].

    The arguments are those of `salt`.
    """
    integer("history", history, 1)
    number("threshold", threshold, 0, 1)
    pair = _pairs(turns, match, threshold)
    # s_{t-1} and (a_t, o_t) settle s_t, so an edge is a turn's pair and the h pairs before it.
    window = [np.where(turns.turn >= k, np.roll(pair, k), -1) for k in range(history + 1)]
    return encode(*window)


def _pairs(turns: TurnTable, match: Match, threshold: float) -> Ints:
    """Return the pair (action, what it led to) of each turn as a label. Shape [N]."""
    if isinstance(match, str) and match == "exact":
        return encode(turns.group, turns.action_key, turns.next_state_key)
    scorer = pure_scorer(match)
    group = encode(turns.group)
    cluster = np.zeros(len(turns), dtype=np.int64)
    for rows in members(group):
        texts, text = np.unique(turns.text[rows], return_inverse=True)
        cosine = np.clip(scorer(texts.tolist(), texts.tolist()), 0.0, 1.0)
        similar = checked(cosine, (len(texts), len(texts))) > threshold
        cluster[rows] = _components(similar)[text]
    return encode(group, cluster)


def _components(similar: Bools) -> Ints:
    """Return the least index in the connected component of each index. Shapes [T, T] -> [T]."""
    similar = similar | similar.T | np.eye(len(similar), dtype=np.bool_)
    label = np.arange(len(similar))
    while True:
        lowest = np.where(similar, label, len(similar)).min(axis=1, initial=len(similar))
        lowest = lowest[lowest]  # pointer jumping: take the label of the lowest neighbour
        if (lowest == label).all():
            return label.astype(np.int64)
        label = lowest
