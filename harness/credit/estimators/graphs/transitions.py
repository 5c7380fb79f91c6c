"""The graph of the transitions of each group: its states, and the way from them to success."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.credit.groups import encode
from harness.credit.table import TurnTable
from harness.types.arrays import Bools, Floats, Ints, Keys


@dataclass(frozen=True, slots=True, eq=False)
class Transitions:
    """The transitions of N turns between S states of G groups; equal states of a group are one.

    A turn leads to the state of the next turn of its rollout, and the last one to its
    `next_state_key`; but the last turn of a success leads to the group's goal, one more state.
    """

    source: Ints  # [N], the state that the turn was taken in
    target: Ints  # [N], the state that it led to
    group: Ints  # [S], 0..G-1
    goal: Bools  # [S], the state is its group's goal

    @classmethod
    def of(cls, turns: TurnTable) -> Transitions:
        """Return the transitions of a table."""
        group, n, goes_on = encode(turns.group), len(turns), turns.goes_on
        reached = np.where(goes_on, np.roll(turns.state_key, -1), turns.next_state_key)
        won = ~goes_on & turns.success  # these turns lead to the goal
        # Rows 0..n-1 are the states that turns were taken in, n..2n-1 those that they led to.
        key: Keys = np.concatenate([turns.state_key, np.where(won, "", reached)])
        goal = np.concatenate([np.zeros(n, np.bool_), won])
        label = encode(np.concatenate([group, group]), goal.astype(np.int64), key)
        states = label.max(initial=-1) + 1
        group_of, is_goal = np.zeros(states, np.int64), np.zeros(states, np.bool_)
        group_of[label], is_goal[label] = np.concatenate([group, group]), goal
        return cls(label[:n], label[n:], group_of, is_goal)

    def edges(self) -> tuple[Ints, Ints]:
        """Return source and target of each distinct transition. Shapes [E] each."""
        pairs = np.unique(self.source * len(self.group) + self.target)
        return pairs // max(len(self.group), 1), pairs % max(len(self.group), 1)

    def distances(self) -> Floats:
        """Return the least number of turns from each state to its goal, or inf. Shape [S]."""
        distance = np.where(self.goal, 0.0, np.inf)
        source, target = self.edges()
        while True:  # breadth first: a state that is reached is never nearer
            unknown = np.isinf(distance[source])
            source, target = source[unknown], target[unknown]
            reached = np.isfinite(distance[target])
            if not reached.any():
                return distance
            distance[source[reached]] = distance[target[reached]] + 1

    def decayed(self, weight: Floats, decay: float) -> Floats:
        """Return max over states v of weight(v) decay^d(s, v) for each state s. Shapes [S] -> [S].

        d(s, v) is the least number of turns from s to v; a state that s does not lead to counts 0.
        Weights are at least 0, and `decay` is in [0, 1].
        """
        potential = weight.copy()
        source, target = self.edges()
        while True:
            offered = decay * potential[target]
            higher = offered > potential[source]
            if not higher.any():
                return potential
            np.maximum.at(potential, source[higher], offered[higher])


def group_maximum(x: Floats, group: Ints) -> Floats:
    """Return the largest value of each row's group, at least 0. Shapes [K], [K] -> [K]."""
    largest = np.zeros(group.max(initial=-1) + 1)
    np.maximum.at(largest, group, x)
    return largest[group]
