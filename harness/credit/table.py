"""The turn table, the input of all estimators: N turns in the batch, R rollouts, G groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agentgyms.core.env import Feedback
from harness.credit import rewards
from harness.types.arrays import Bools, Floats, Ints, Keys
from harness.types.errors import TableError
from harness.types.rollout import Rollout, Turn

INVALID_FEEDBACK: Final = (Feedback.MALFORMED.value, Feedback.INADMISSIBLE.value)
LOOKUPS: Final = ("show_api_doc", "show_api_descriptions")
"""Functions of AppWorld that look up documentation, as in GVPO's Figure 4; `show_api_doc` is called
`show_api_docs` there."""
FAILED_FEEDBACK: Final = (Feedback.MALFORMED.value, Feedback.FAILED.value)


@dataclass(frozen=True, eq=False)
class TurnTable:
    """One row per turn; rows of a rollout are contiguous and in order; columns have shape [N]."""

    rollout: Ints  # index of the rollout, 0..R-1
    group: Ints  # index of the rollout's group
    turn: Ints  # position in the rollout, from 0
    reward: Floats  # training reward of the turn: the environment's, or that of success or score
    success: Bools  # the rollout succeeded; the same in all its rows
    valid: Bools  # feedback was neither `malformed` nor `inadmissible`
    failed: Bools  # feedback was `failed` or `malformed` (GVPO's failed steps)
    ends_turn: Bools  # the row is a turn, or the last token of one
    state_key: Keys  # state before the action
    next_state_key: Keys  # state after the action
    action_key: Keys  # canonical action
    text: Keys  # "action || observation", for semantic scorers
    value: Floats | None = None  # critic's value of the state before the action, or None
    process_reward: Floats | None = None  # a reward model's score, or None
    entropy: Floats | None = None  # mean token entropy of the response in nats, or None
    # Probability of a token of the action given the outcome (geometric mean), or None.
    hindsight: Floats | None = None
    # Divergence from the reference policy: k1 summed over the response's tokens, or None.
    kl: Floats | None = None
    # Divergence from a teacher: k1 summed over the response's tokens, or None.
    teacher_kl: Floats | None = None
    length: Floats | None = None  # tokens of the response, or None
    # Squared length of the gradient of log pi by the logits, summed over the response's tokens, or
    # None.
    energy: Floats | None = None
    # Mean return of continuations from right before the turn, or None.
    state_value: Floats | None = None
    # Atoms of the goal before and after the action: a mapping of names to True, False or a share in
    # [0, 1], empty where unknown; None if no turn has any.
    atoms: Keys | None = None
    next_atoms: Keys | None = None
    # Added to the turn's own step return, and to no other's (SCPO), or None.
    return_bonus: Floats | None = None
    # Index of the rollout that the row's rollout branched from, an earlier one of its group; -1 for
    # none. None if no rollout branched.
    parent: Ints | None = None
    # Number of rows that its rollout shares with that one, as its first; 0 for none.
    branch_turn: Ints | None = None
    # Columns of plug-ins by name, numbers of shape [N] each, or None.
    extra: Mapping[str, Floats] | None = None

    def __post_init__(self) -> None:
        """Refuse columns that do not fit together, with `TableError`."""
        n = len(self.rollout)
        own = {name: column for name, column in vars(self).items() if name != "extra"}
        for name, column in (own | dict(self.extra or {})).items():
            if column is None:
                continue
            if column.shape != (n,):
                raise TableError(f"{name} has shape {column.shape}, expected ({n},)")
            if column.dtype.kind == "f" and not np.isfinite(column).all():
                row = int(np.flatnonzero(~np.isfinite(column))[0])
                raise TableError(f"{name} is {column[row]} in row {row}, expected finite numbers")
        self._check_order()

    def _check_order(self) -> None:
        if not len(self.rollout):
            return
        _check_numbers(self.rollout)
        rows = np.arange(len(self.rollout))
        expected = rows - self.starts[self.rollout]
        if (self.turn != expected).any():
            row = int(np.flatnonzero(self.turn != expected)[0])
            raise TableError(f"row {row} is turn {self.turn[row]}, expected turn {expected[row]}")
        for name in ("group", "success", "parent", "branch_turn"):
            column = getattr(self, name)
            if column is not None and (column != column[self.starts][self.rollout]).any():
                raise TableError(f"{name} differs between rows of one rollout")
        if (self.parent is None) != (self.branch_turn is None):
            raise TableError("parent and branch_turn tell of branches together: give both")
        if self.parent is not None and self.branch_turn is not None:
            _check_branches(self.parent, self.branch_turn, self.starts, self.group)

    def __len__(self) -> int:
        return len(self.rollout)

    def require(self, columns: Sequence[str], who: str) -> None:
        """Refuse a table that lacks a column with a `TableError`, which names it and `who`."""
        for name in columns:
            if getattr(self, name, (self.extra or {}).get(name)) is None:
                remedy = "train with a method whose annotator fills it"
                if name in ATOMS:
                    remedy = "play an environment that tells info['atoms']"
                raise TableError(
                    f"{who} needs the column {name!r}, which this table lacks: give it to "
                    f"TurnTable.from_columns, or {remedy}"
                )

    @property
    def starts(self) -> Ints:
        """Row of the first turn of each rollout. Shape [R]."""
        return np.flatnonzero(np.diff(self.rollout, prepend=-1)).astype(np.int64)

    @property
    def goes_on(self) -> Bools:
        """Whether the next row is of the same rollout. Shape [N]."""
        same: Bools = np.diff(self.rollout, append=-1) == 0
        return same

    @classmethod
    def from_columns(cls, **columns: Any) -> TurnTable:
        """Build a table from sequences of N values, with defaults for what is missing.

        Only `rollout` and `reward` are required. Defaults: one group, turns counted from 0, success
        where the rollout's return is positive, all turns valid and none failed, all states
        different, actions and texts empty. Keys and texts are strings, or whole numbers, which
        become strings; flags are true or false, or 1 and 0. `extra` is a mapping of sequences.

        Raises:
            TableError: A column is unknown, missing or does not fit.
        """
        unknown = sorted(set(columns) - set(cls.__dataclass_fields__))
        if unknown:
            known = ", ".join(cls.__dataclass_fields__)
            raise TableError(f"unknown column {unknown[0]!r}: expected some of {known}")
        for name in ("rollout", "reward"):
            if name not in columns:
                raise TableError(f"column {name!r} is missing")
        extra = {k: _typed(k, v) for k, v in (columns.pop("extra", None) or {}).items()}
        given = {k: _typed(k, v) for k, v in columns.items() if v is not None}
        return cls(**_defaults(given["rollout"], given["reward"]) | given, extra=extra or None)

    @classmethod
    def from_rollouts(
        cls, rollouts: Sequence[Rollout], *, reward: str = "environment", reward_scale: float = 1.0
    ) -> TurnTable:
        """Build the table of finished rollouts.

        Args:
            rollouts: Without infrastructure errors, each with at least one turn.
            reward: Name of the reward; see `harness.credit.rewards`.
            reward_scale: Factor on the rewards; the papers train on 10.

        Raises:
            TableError: A rollout has an error or no turns, or a turn's reward is no number.
            ConfigError: The reward is unknown.
        """
        rewards_of = rewards.get(reward)
        for rollout in rollouts:
            if rollout.error or not rollout.turns:
                why = rollout.error or "it has no turns"
                raise TableError(f"a rollout of task {rollout.task_id} cannot be credited: {why}")
        rows = [(i, rollout, turn) for i, rollout in enumerate(rollouts) for turn in rollout.turns]
        return cls.from_columns(
            rollout=[i for i, _, _ in rows],
            group=[rollout.group for _, rollout, _ in rows],
            turn=[t for rollout in rollouts for t in range(len(rollout.turns))],
            reward=[reward_scale * value for r in rollouts for value in rewards_of(r)],
            success=[rollout.success for _, rollout, _ in rows],
            valid=[turn.feedback not in INVALID_FEEDBACK for _, _, turn in rows],
            failed=[turn.feedback in FAILED_FEEDBACK for _, _, turn in rows],
            state_key=[turn.state_key for _, _, turn in rows],
            next_state_key=[turn.next_state_key for _, _, turn in rows],
            action_key=[turn.action_key for _, _, turn in rows],
            text=[f"{turn.action} || {turn.next_observation}" for _, _, turn in rows],
            **_branches(rollouts),
            **_atoms([turn for _, _, turn in rows]),
        )


def _atoms(turns: Sequence[Turn]) -> dict[str, list[Mapping[str, float]]]:
    """Return the columns of atoms; none if no turn has any."""
    if not any(turn.next_atoms for turn in turns):
        return {}
    before = [turn.atoms for turn in turns]
    return {"atoms": before, "next_atoms": [turn.next_atoms for turn in turns]}


def _branches(rollouts: Sequence[Rollout]) -> dict[str, list[int]]:
    """Return the columns of branches; none if no rollout branched."""
    if all(rollout.parent is None for rollout in rollouts):
        return {}
    index = {(rollout.group, rollout.member): i for i, rollout in enumerate(rollouts)}
    parents = []
    for rollout in rollouts:
        if rollout.parent is not None and (rollout.group, rollout.parent) not in index:
            raise TableError(
                f"rollout {rollout.member} of group {rollout.group} branched from member "
                f"{rollout.parent}, which is not among the rollouts: give the whole group"
            )
        own = rollout.parent
        parents.append(-1 if own is None else index[rollout.group, own])
    return {
        "parent": [p for p, one in zip(parents, rollouts, strict=True) for _ in one.turns],
        "branch_turn": [one.branch_turn for one in rollouts for _ in one.turns],
    }


def _check_branches(parent: Ints, branch_turn: Ints, starts: Ints, group: Ints) -> None:
    """Refuse branches that are none of an earlier rollout of the group, or too long."""
    lengths = np.diff(np.append(starts, len(parent)))
    for rollout, (above, turn) in enumerate(
        zip(parent[starts].tolist(), branch_turn[starts].tolist(), strict=True)
    ):
        if above == -1 and turn == 0:
            continue
        if not 0 <= above < rollout or group[starts[above]] != group[starts[rollout]]:
            raise TableError(
                f"rollout {rollout} branched from rollout {above}: expected an earlier one of its "
                "group, or parent -1 and branch_turn 0"
            )
        if not 0 <= turn < min(lengths[above], lengths[rollout]):
            raise TableError(
                f"rollout {rollout} has branch_turn {turn}: expected fewer than its turns and "
                f"those of rollout {above}, which are {lengths[rollout]} and {lengths[above]}"
            )


_WHOLE: Final = ("rollout", "group", "turn", "parent", "branch_turn")
_FLAGS: Final = ("success", "valid", "failed", "ends_turn")
_KEYS: Final = ("state_key", "next_state_key", "action_key", "text")
ATOMS: Final = ("atoms", "next_atoms")
"""Columns that rollouts bring; no annotator fills them."""
_TYPES: Final[dict[str, Any]] = {
    **dict.fromkeys(_WHOLE, np.int64),
    **dict.fromkeys(_FLAGS, np.bool_),
}
"""Types of the columns that are neither keys nor atoms nor float64."""


def _typed(name: str, column: Any) -> NDArray[Any]:
    """Return a column in its type; nothing is rounded, and no text is read as a number."""
    if name in _KEYS:
        return _keys(name, column)
    if name in ATOMS:
        return _mappings(name, column)
    try:
        given = np.asarray(column)
    except ValueError as e:  # rows of unequal lengths
        raise TableError(f"column {name!r} cannot be read: {e}") from None
    if given.dtype.kind not in "biuf" and given.size:
        expected = "numbers"
    elif name in _FLAGS and not np.isin(given, (0, 1)).all():
        expected = "true or false"
    elif name in _WHOLE and not _are_whole(given):
        expected = "whole numbers"
    else:
        return given.astype(_TYPES.get(name, np.float64))
    raise TableError(f"column {name!r} cannot be read: expected {expected}, got {column!r:.60}")


def _are_whole(given: NDArray[Any]) -> bool:
    numbers = given.dtype.kind != "b" and bool(np.isfinite(given).all())
    return numbers and bool((given % 1 == 0).all())


def _keys(name: str, column: Any) -> Keys:
    """Return a column of strings, whole numbers among them written out."""
    keys = np.asarray(column, dtype=np.object_)
    for row, key in enumerate(keys.tolist() if keys.ndim == 1 else ()):
        if isinstance(key, str):
            continue
        if isinstance(key, bool) or not isinstance(key, Integral):
            raise TableError(f"column {name!r} must hold strings, got {key!r:.60} in row {row}")
        keys = keys.copy() if keys is column else keys
        keys[row] = str(key)
    return keys


def _mappings(name: str, column: Any) -> Keys:
    mappings = np.empty(len(column), dtype=np.object_)
    for row, given in enumerate(column):
        if not isinstance(given, Mapping) or not all(
            isinstance(part, str) and 0 <= float(value) <= 1 for part, value in given.items()
        ):
            raise TableError(
                f"column {name!r} must hold mappings of names to True, False or shares in [0, 1], "
                f"got {given!r:.60} in row {row}"
            )
        mappings[row] = given
    return mappings


def _check_numbers(rollout: Ints) -> None:
    """Refuse rollouts that are not numbered 0, 1, 2... in this order."""
    step = np.diff(rollout, prepend=-1)
    wrong = np.flatnonzero((step != 1) & ((step != 0) | (rollout < 0)))
    if len(wrong):
        raise TableError(
            f"rollouts must be numbered 0, 1, 2... with contiguous rows; row {wrong[0]} has "
            f"rollout {rollout[wrong[0]]}"
        )


def _defaults(rollout: Ints, reward: Floats) -> dict[str, NDArray[Any]]:
    if rollout.ndim != 1 or reward.shape != rollout.shape:
        raise TableError(
            f"rollout has shape {rollout.shape}, reward {reward.shape}: expected equal [N]"
        )
    _check_numbers(rollout)
    n = len(rollout)
    begins = np.diff(rollout, prepend=-1) != 0
    first = np.maximum.accumulate(np.where(begins, np.arange(n), 0))
    returns = np.bincount(rollout, weights=reward)
    return {
        "group": np.zeros(n, np.int64),
        "turn": np.arange(n) - first,
        "success": returns[rollout] > 0,
        "valid": np.ones(n, np.bool_),
        "failed": np.zeros(n, np.bool_),
        "ends_turn": np.ones(n, np.bool_),
        "state_key": np.asarray([f"row {i}" for i in range(n)], dtype=object),
        "next_state_key": np.asarray([f"row {i + 1}" for i in range(n)], dtype=object),
        "action_key": np.full(n, "", dtype=object),
        "text": np.full(n, "", dtype=object),
    }
