"""Groups of turns in the same state: states with equal keys, or with similar texts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final

import numpy as np
from rapidfuzz import fuzz, process

from harness.credit.groups import encode
from harness.credit.table import TurnTable
from harness.types.arrays import Ints
from harness.types.errors import ConfigError
from harness.types.hyperparameters import number

_SEPARATOR: Final = " || "
_SLACK: Final = 1e-3
"""Percent by which the bound, in single precision, may be rounded."""


def states(turns: TurnTable, similarity: float | None = None) -> Ints:
    """Return labels of turns, equal exactly when their states are. Shape [N].

    States are equal when the turns are of one group and the keys agree. With `similarity`, in (0,
    1], also when the states' texts are similar: the distinct texts of a group are taken in
    alphabetical order, and each is added to the first cluster whose first text has a difflib ratio
    of at least `similarity` with it, or starts a new one. GiGPO's released code does greedy first
    fit in the order of its rows; alphabetical order makes the result independent of that order.

    A state's text is the observation that the turn before reached (the part of the column `text`
    behind "||"), the alphabetically first if there are several. A state that was never reached by a
    turn, like the initial one, or a table without texts has the key for its text.
    """
    exact = encode(turns.group, turns.state_key)
    if similarity is None:
        return exact
    number("similarity", similarity, 0, 1)
    if similarity == 0:
        raise ConfigError("similarity must be above 0, or all states are equal")
    first = np.unique(exact, return_index=True)[1]  # a row of each of S states
    texts = state_texts(turns, exact, first)
    owners = defaultdict(list)
    for state, group in enumerate(turns.group[first].tolist()):
        owners[group].append(state)
    cluster = np.zeros(len(first), dtype=np.int64)
    begun = 0
    for members in owners.values():
        found = first_fit([texts[state] for state in members], similarity)
        cluster[members] = found + begun
        begun += len(members)
    return cluster[exact]


def first_fit(texts: Sequence[str], similarity: float) -> Ints:
    """Return the cluster of each text, by greedy first fit in alphabetical order. Shape [S]."""
    leaders: list[str] = []
    cluster_of: dict[str, int] = {}
    for text in sorted(set(texts)):
        cluster_of[text] = _fitting(text, leaders, similarity)
        if cluster_of[text] == len(leaders):
            leaders.append(text)
    return np.array([cluster_of[text] for text in texts], dtype=np.int64)


def _fitting(text: str, leaders: Sequence[str], similarity: float) -> int:
    """Return the index of the first similar leader, or the number of leaders."""
    if not leaders:
        return 0
    # The longest common subsequence is never shorter than the blocks that difflib finds: so
    # rapidfuzz's ratio is an upper bound, and few pairs are left for difflib.
    cutoff = 100 * similarity - _SLACK
    bound = process.cdist([text], leaders, scorer=fuzz.ratio, score_cutoff=cutoff)[0]
    for index in np.flatnonzero(bound).tolist():  # what is below the cut-off is 0
        if SequenceMatcher(None, text, leaders[index]).ratio() >= similarity:
            return int(index)
    return len(leaders)


def state_texts(turns: TurnTable, exact: Ints, first: Ints) -> list[str]:
    """Return the text of each of S states; see `states`.

    `exact` has the state of each turn, 0..S-1, and `first` a row of each state. Shapes [N] and [S].
    """
    known: dict[int, str] = {}
    states_of, owner = exact.tolist(), turns.rollout.tolist()
    for row, text in enumerate(turns.text.tolist()[:-1]):
        _, separator, observation = str(text).partition(_SEPARATOR)
        if separator and owner[row] == owner[row + 1]:
            state = states_of[row + 1]
            known[state] = min(known.get(state, observation), observation)
    keys = turns.state_key[first].tolist()
    return [known.get(state, str(key)) for state, key in enumerate(keys)]
