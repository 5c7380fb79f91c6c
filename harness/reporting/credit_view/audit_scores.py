"""All figures of an audit: of methods on a truth set, and on its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness.audit.agreement import Agreement, agree
from harness.audit.fresh_groups import regroup
from harness.audit.parts import by_group_size, by_thirds, check_sizes
from harness.audit.truth_sets import TruthSet
from harness.credit.table import TurnTable
from harness.reporting.credit_view.compare import Choice, Credit, compare, measured_with
from harness.types.arrays import Floats

GROUP_SIZE = "group size"
"""The name of what `by_group_size` parts by."""


@dataclass(frozen=True, slots=True)
class Scores:
    """The figures of an audit."""

    results: list[Credit]
    agreement: Agreement
    # figures of parts, by what the turns are parted and by name of the part
    parts: Mapping[str, Mapping[str, Agreement]]


def score(
    truth_set: TruthSet,
    choices: Sequence[Choice],
    sizes: Sequence[int] = (),
    by: Sequence[str] = (),
) -> Scores:
    """Return the figures of methods on a truth set, also of groups of `sizes` and parts `by`."""
    truth, about = truth_set.truth, truth_set.about
    turns, repeats, fresh = truth.credited(), int(about.get("repeats", 1)), None
    choices = [measured_with(choice, truth.options.gamma) for choice in choices]
    measured = [choice.name for choice in choices if choice.is_measured]
    played = np.bincount(truth.turns.group[truth.turns.starts]).max()
    check_sizes(sizes, int(about.get("group_size", played)) * repeats)
    if repeats > 1:
        groups = regroup(turns, int(about["group_size"]))
        fresh = groups.several
        results = [
            one if one.advantage is None else replace(one, advantage=groups.in_order(one.advantage))
            for one in compare(groups.turns, choices)
        ]
    else:
        results = compare(turns, choices)
    advantages = _computed(results)

    def estimators(turns: TurnTable) -> dict[str, Floats]:
        return _computed(compare(turns, choices))

    parts = {GROUP_SIZE: by_group_size(truth, sizes, estimators, measured)} if sizes else {}
    parts |= {one: by_thirds(truth, advantages, one, measured) for one in by}
    return Scores(results, agree(truth, advantages, measured=measured, fresh=fresh), parts)


def _computed(results: Sequence[Credit]) -> dict[str, Floats]:
    return {one.choice.name: one.advantage for one in results if one.advantage is not None}
