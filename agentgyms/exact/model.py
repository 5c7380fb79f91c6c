"""Enumerated environments: all states that an episode can reach, as arrays, and their values.

Letters: S states, A actions of the state that has most, B transitions of the action that has most,
H turns left where the enumeration began. Rows are padded; `legal` says which actions there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from agentgyms.core.errors import BadOption
from agentgyms.exact.dynamics import Dynamics, State, Transition, is_exact

Floats = NDArray[np.float64]
Reward = Literal["environment", "success", "score"]
Policy = Callable[[State], Sequence[float]] | Floats
"""Probabilities of the actions: a function of the state, or an array [S, A] or [H, S, A]."""

_EQUAL: Final = 1e-12
"""A difference between values that is rounding."""


@dataclass(frozen=True, eq=False)
class Values:
    """The values of a policy, by the turns taken since the enumeration began.

    Attributes:
        value: The expected return from a state on. Shape [H + 1, S]; 0 in the last row.
        action_value: The expected return of an action, then of the policy. Shape [H, S, A]; nan
            where a state has no such action.
        policy: The probabilities of the actions. Shape [H, S, A].
    """

    value: Floats
    action_value: Floats
    policy: Floats

    @property
    def advantage(self) -> Floats:
        """What an action is worth more than the policy's choice. Shape [H, S, A]."""
        return self.action_value - self.value[:-1, :, None]


@dataclass(frozen=True, eq=False)
class Model:
    """An enumerated environment; see `enumerate_states`.

    Attributes:
        states: The states, the one in which the enumeration began first.
        keys: The `state_key` of each.
        actions: The admissible actions of each; () where the episode is over.
        horizon: H.
        legal: Whether a state has an action. Shape [S, A].
        probability: The probability of a transition. Shape [S, A, B]; 0 in padding.
        after: The number of the state after it. Shape [S, A, B].
        over: Whether it ends the episode. Shape [S, A, B].
        rewards: The reward of it, by kind. Shape [S, A, B] each.
    """

    states: tuple[State, ...]
    keys: tuple[str, ...]
    actions: tuple[tuple[str, ...], ...]
    horizon: int
    legal: NDArray[np.bool_]
    probability: Floats
    after: NDArray[np.int64]
    over: NDArray[np.bool_]
    rewards: Mapping[str, Floats]
    number: Mapping[State, int] = field(repr=False)  # of each state

    def optimal(self, reward: Reward = "environment", gamma: float = 1.0) -> Values:
        """Return the best policy and its values.

        Among equally good actions the policy takes the one that ends the episode in fewer turns on
        average, then the first.

        Args:
            reward: `environment`, its own; `success`, 1 for a solved task; `score`, the score.
            gamma: The discount of each later turn, in (0, 1].
        """
        expected, follow = self._parts(reward, gamma)
        value = np.zeros((self.horizon + 1, len(self.states)))
        turns = np.zeros(len(self.states))
        action_value, policy = self._empty()
        for t in reversed(range(self.horizon)):
            q = np.where(self.legal, expected + self._ahead(follow, value[t + 1]), np.nan)
            length = np.where(self.legal, 1 + self._ahead(self._goes_on, turns), np.inf)
            best = np.where(self.legal, q, -np.inf).max(axis=1, initial=-np.inf, keepdims=True)
            chosen = np.where(q >= best - _EQUAL, length, np.inf).argmin(axis=1)
            rows, acts = np.arange(len(self.states)), self.legal.any(axis=1)
            action_value[t], policy[t, rows[acts], chosen[acts]] = q, 1.0
            value[t] = np.where(acts, np.nan_to_num(q[rows, chosen]), 0.0)
            turns = np.where(acts, np.where(acts, length[rows, chosen], 0.0), 0.0)
        return Values(value, action_value, policy)

    def evaluate(
        self, policy: Policy, reward: Reward = "environment", gamma: float = 1.0
    ) -> Values:
        """Return the values of a policy; for `reward` and `gamma` see `optimal`.

        The policy is a function of the state that returns a number for each of its admissible
        actions, or an array of shape [S, A] or [H, S, A].

        Raises:
            BadOption: The probabilities of a state are negative or do not add up to 1.
        """
        probabilities = self.table_of(policy)
        expected, follow = self._parts(reward, gamma)
        value = np.zeros((self.horizon + 1, len(self.states)))
        action_value, _ = self._empty()
        for t in reversed(range(self.horizon)):
            q = expected + self._ahead(follow, value[t + 1])
            value[t] = (probabilities[t] * q).sum(axis=1)
            action_value[t] = np.where(self.legal, q, np.nan)
        return Values(value, action_value, probabilities)

    def visits(self, policy: Policy) -> Floats:
        """Return the probability of each state after t turns, [H, S]; what has ended is nowhere."""
        probabilities = self.table_of(policy)
        seen = np.zeros((self.horizon, len(self.states)))
        seen[:1, 0] = 1.0
        for t in range(1, self.horizon):
            moved = (seen[t - 1][:, None] * probabilities[t - 1])[..., None] * self._goes_on
            np.add.at(seen[t], self.after.ravel(), moved.ravel())
        return seen

    def gradient(
        self, policy: Policy, reward: Reward = "environment", gamma: float = 1.0
    ) -> Floats:
        """Return the gradient of the expected return in the logits of a softmax policy, [H, S, A].

        dJ / dlogit(t, s, a) = gamma^t d_t(s) pi(a|s) A_t(s, a), with d_t the `visits`; 0 for
        actions that a state does not have. For logits that do not depend on the turn, sum over t;
        for other parameters, multiply by d log pi. Reference: Sutton et al. 2000, Policy gradient
        methods, theorem 1.
        """
        values = self.evaluate(policy, reward, gamma)
        discount = gamma ** np.arange(self.horizon)
        weight = discount[:, None] * self.visits(policy)
        return weight[..., None] * values.policy * np.nan_to_num(values.advantage)

    def table_of(self, policy: Policy) -> Floats:
        """Return a policy's probabilities. Shape [H, S, A]; for errors see `evaluate`."""
        if callable(policy):
            table = np.zeros(self.legal.shape)
            for row, (state, names) in enumerate(zip(self.states, self.actions, strict=True)):
                if names:
                    given = np.asarray(policy(state), np.float64)
                    if given.shape != (len(names),):
                        raise BadOption(
                            f"the policy gave {given.shape} probabilities for the {len(names)} "
                            f"actions of {state!r:.80}"
                        )
                    table[row, : len(names)] = given
        else:
            table = np.asarray(policy, np.float64)
        if table.shape not in (self.legal.shape, (self.horizon, *self.legal.shape)):
            raise BadOption(
                f"a policy has shape {self.legal.shape} or {(self.horizon, *self.legal.shape)}, "
                f"got {table.shape}"
            )
        acts = self.legal.any(axis=1)
        sums, outside = table.sum(axis=-1), np.where(self.legal, 0.0, table)
        if (table < 0).any() or outside.any() or not np.allclose(sums[..., acts], 1.0, atol=1e-9):
            raise BadOption(
                "the probabilities of a state's admissible actions must be 0 or more and add up to "
                "1, those of other actions 0"
            )
        return np.broadcast_to(table, (self.horizon, *self.legal.shape))

    @property
    def _goes_on(self) -> Floats:
        """The probability of each transition that does not end the episode. Shape [S, A, B]."""
        return np.where(self.over, 0.0, self.probability)

    def _parts(self, reward: Reward, gamma: float) -> tuple[Floats, Floats]:
        """Return the expected reward [S, A], and the discounted way on [S, A, B]."""
        if reward not in self.rewards:
            known = ", ".join(self.rewards)
            raise BadOption(f"reward {reward!r} is unknown: expected one of {known}")
        if not 0 < gamma <= 1:
            raise BadOption(f"gamma must be in (0, 1], got {gamma}")
        expected: Floats = (self.probability * self.rewards[reward]).sum(axis=2)
        return expected, gamma * self._goes_on

    def _ahead(self, weight: Floats, value: Floats) -> Floats:
        """Return the mean of a figure over the states after each action. Shape [S, A]."""
        ahead: Floats = (weight * value[self.after]).sum(axis=2)
        return ahead

    def _empty(self) -> tuple[Floats, Floats]:
        shape = (self.horizon, *self.legal.shape)
        return np.full(shape, np.nan), np.zeros(shape)


def enumerate_states(env: Any, max_states: int = 100_000) -> Model:
    """Return the model of an environment from the state in which its episode stands.

    Args:
        env: An environment that is a `Dynamics`, wrapped or not, after a reset.
        max_states: The most states that are listed.

    Raises:
        BadOption: The environment does not know its transitions, such as one on a server, or more
            states can be reached.
    """
    world = getattr(env, "unwrapped", env)
    if not is_exact(world):
        raise BadOption(
            f"{type(world).__name__} has no exact values: it does not list its transitions; "
            "expected one of agentgyms.envs.games or the corridor, in this process"
        )
    number: dict[State, int] = {world.position: 0}
    actions: list[tuple[str, ...]] = []
    found: list[list[Sequence[Transition]]] = []
    states = [world.position]
    for state in states:  # grows while it is read
        names = tuple(world.actions_in(state))
        rows = [world.transitions(state, name) for name in names]
        actions.append(names)
        found.append(rows)
        for one in (one for row in rows for one in row):
            if one.state not in number:
                number[one.state] = len(states)
                states.append(one.state)
        if len(states) > max_states:
            raise BadOption(
                f"{type(world).__name__} has more than {max_states} states from here: play "
                "continuations, or give a larger max_states"
            )
    return _arrays(world, states, number, actions, found)


def _arrays(
    world: Dynamics,
    states: list[State],
    number: dict[State, int],
    actions: list[tuple[str, ...]],
    found: list[list[Sequence[Transition]]],
) -> Model:
    most_actions = max(1, *map(len, actions)) if actions else 1
    most = max([1, *(len(row) for rows in found for row in rows)])
    shape = (len(states), most_actions, most)
    probability, own, success, score = (np.zeros(shape) for _ in range(4))
    after, over = np.zeros(shape, np.int64), np.ones(shape, np.bool_)
    for s, rows in enumerate(found):
        for a, row in enumerate(rows):
            for b, one in enumerate(row):
                probability[s, a, b], after[s, a, b] = one.probability, number[one.state]
                over[s, a, b], own[s, a, b] = one.over, one.reward
                success[s, a, b], score[s, a, b] = one.success, one.score
    legal = np.arange(most_actions) < np.array([len(names) for names in actions])[:, None]
    return Model(
        tuple(states), tuple(map(world.key_of, states)), tuple(actions), world.turns_left, legal,
        probability, after, over,
        {"environment": own, "success": success, "score": score}, number,
    )  # fmt: skip
