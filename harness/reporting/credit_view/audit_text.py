"""All figures of an audit, computed and as text: a table, CSV, and JSON with all digits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np

from agentgyms.registration import short_name
from harness.audit import spread
from harness.audit.agreement import NAMES, Agreement, agree
from harness.audit.evidence import CLEAR
from harness.audit.fresh_groups import regroup
from harness.audit.intervals import Figure
from harness.audit.parts import by_group_size, by_thirds, check_sizes
from harness.audit.truth import TruthOptions
from harness.audit.truth_sets import TruthSet
from harness.credit.table import TurnTable
from harness.reporting.credit_view.compare import Choice, Credit, compare, measured_with
from harness.reporting.results.setting import Setting
from harness.reporting.table import Table
from harness.rollouts.continuations import Cost
from harness.types.arrays import Floats

_COLUMN: Final = 21
_METHOD: Final = 16
LEGEND: Final = (
    "spearman: the order of all turns; within_rollouts, within_states: of the turns of a rollout, "
    "of equal states; gradient: cosine of the policy gradients.\nsign: of the turns whose truth is "
    "clear. precision, recall: the 10 % of turns with the most credit, as clearly good ones.\n"
    "In brackets 95 % intervals by the jackknife over tasks. ceiling: what the truth reaches if it "
    "is measured a second time;\nhalf's ceiling: the same of half of the continuations, by which "
    "oracle and vineppo are credited, and compared with the other half.\n"
    "tasks, turns: how many bear the figure, of tasks with a mixed group, whose rollouts end "
    "differently; – where they are too few."
)
SPREAD_LEGEND: Final = (
    "Over fresh groups of each task: snr: squared norm of a group's expected gradient over its "
    "variance (ceiling: by the truth).\nsignal, bias, noise: shares of the mean square of a turn's "
    "credit that go with the truth, that are another mean, and that differ from group to group."
)
_PART_FIGURES: Final = ("spearman", "gradient", "snr")
"""Figures that the terminal shows of the parts of an audit; files have all."""

Parts = Mapping[str, Mapping[str, Agreement]]
"""Figures of parts of the turns: by what they are parted, and name of the part."""


def title(truth_set: TruthSet) -> str:
    """Return the environment, whose tasks they are, and the policy."""
    about = truth_set.about
    policy = dict(about.get("policy", {}))
    noise = f", noise {policy['noise']:g}" if "noise" in policy else ""
    name = short_name(str(about.get("environment", "rollouts")))
    played = Setting(name, str(about.get("split", "")), data=str(about.get("data") or ""))
    return f"{played.title}; {policy.get('name', 'policy')}{noise}"


def report(
    truth_set: TruthSet, agreement: Agreement, results: Sequence[Credit], parts: Parts
) -> str:
    """Return the summary and all tables, with what they mean."""
    blocks = [summary(truth_set, agreement), table(agreement, results), LEGEND]
    if any(spread.NAMES[0] in figures for figures in agreement.figures.values()):
        blocks += [_lines([(name, agreement, name) for name in spread.NAMES]), SPREAD_LEGEND]
    tables = []
    for by, agreements in parts.items():
        for title in _PART_FIGURES:
            columns = [(part, own, title) for part, own in agreements.items()]
            figures = [one.get(title) for _, own, _ in columns for one in own.figures.values()]
            if any(one is not None and math.isfinite(one.value) for one in figures):
                tables.append(f"{title} by {by}\n{_lines(columns)}")
    return "\n\n".join([*blocks, *tables])


def summary(truth_set: TruthSet, agreement: Agreement) -> str:
    """Return what was measured, how much it tells, and what to be warned of, in a few lines."""
    truth, evidence = truth_set.truth, agreement.evidence
    sizes = f"{len(truth_set.tasks)} tasks, {truth.turns.rollout[-1] + 1} rollouts"
    cost, options = truth.cost, truth.options
    gradient = truth_set.about.get("gradient", "")
    own = f"\ngradient: {gradient}" if truth.taken is None and gradient else ""
    return "\n".join(
        [
            f"{title(truth_set)}; {sizes}, {len(truth.turns):,} turns, "
            f"success {evidence.success:.0%}",
            f"truth: {_means(options, cost)}, reward {options.reward}, gamma {options.gamma:g}",
            f"evidence: {evidence.mixed} of {evidence.groups} groups mixed, {evidence.clear:,} "
            f"turns clear ({evidence.clear / len(truth.turns):.1%}; at least {CLEAR:g} and two "
            f"standard errors){own}",
            *evidence.warnings,
        ]
    )


def _means(options: TruthOptions, cost: Cost) -> str:
    if options.exact:
        return f"exact values of each state, by enumeration ({cost.seconds:.0f} s)"
    return (
        f"{options.continuations} continuations of each state ({cost.continuations:,} in all, "
        f"{cost.steps:,} steps, {cost.tokens:,} tokens, {cost.seconds:.0f} s)"
    )


def table(agreement: Agreement, results: Sequence[Credit]) -> str:
    """Return a line for each method, the ceilings, and how much bears the figures."""
    missing = [
        f"{credit.choice.name:{_METHOD}}  not computed: needs {', '.join(credit.missing)}"
        for credit in results
        if credit.advantage is None
    ]
    return "\n".join([_lines([(name, agreement, name) for name in NAMES]), *missing])


def counts(agreement: Agreement) -> dict[str, dict[str, int]]:
    """Return how many tasks and how many turns bear each figure."""
    of = agreement.evidence.of
    return {
        "tasks": {title: count.tasks for title, count in of.items()},
        "turns": {title: count.turns for title, count in of.items()},
    }


def _ceilings(agreement: Agreement) -> dict[str, Mapping[str, float]]:
    """Return the ceilings, and those of methods that are credited by half of the continuations."""
    ceilings = {"ceiling": agreement.ceilings}
    return ceilings | ({"half's ceiling": h} if (h := agreement.half_ceilings) else {})


def _lines(columns: Sequence[tuple[str, Agreement, str]]) -> str:
    """Return a line for each method, the ceilings, and how much bears the figures.

    Each column is its heading, the figures, and the name of the shown one.
    """
    headings, rows = ["method", *(name for name, _, _ in columns)], []
    first = columns[0][1]
    for method in first.figures:
        found = [one.figures[method].get(title) for _, one, title in columns]
        rows.append([method, *map(_cell, found)])
    for name in _ceilings(first):
        values = [_ceilings(one)[name].get(title, math.nan) for _, one, title in columns]
        rows.append([name, *map(number, values)])
    rows += [
        [name, *(f"{counts(one)[name].get(title, 0):,}" for _, one, title in columns)]
        for name in counts(first)
    ]
    return Table(headings, rows).text(f"{_METHOD}", *[f">{_COLUMN}"] * len(columns))


def _cell(figure: Figure | None) -> str:
    if figure is None or not math.isfinite(figure.value):
        return "–"
    low, high = map(number, figure.interval)
    return f"{figure.value:.2f} ({low}, {high})"


def number(value: float) -> str:
    """Return a figure with two decimals; "–" where it is not defined."""
    return f"{value:.2f}" if math.isfinite(value) else "–"


def to_csv(agreement: Agreement, parts: Parts) -> str:
    """Return a row for each method and figure.

    The rows of the methods `ceiling`, `tasks` and `turns` have ceilings, and the tasks and turns
    that bear a figure. The column `part` is "" in the rows of all turns.
    """
    named = {f"{by} {part}": own for by, found in parts.items() for part, own in found.items()}
    rows: list[list[Any]] = []
    for part, one in {"": agreement, **named}.items():
        for name, figures in one.figures.items():
            rows += [[name, title, *_flat(own).values(), part] for title, own in figures.items()]
        for name, values in (_ceilings(one) | counts(one)).items():
            empty = [""] * (len(_FIELDS) - 1)
            rows += [[name, title, value, *empty, part] for title, value in values.items()]
    return Table(["method", "figure", *_FIELDS, "part"], rows).csv()


_FIELDS: Final = ("value", "low", "high", "over_first", "over_first_low", "over_first_high")


def _flat(figure: Figure) -> dict[str, float]:
    numbers = (figure.value, *figure.interval, figure.over_first, *figure.over_first_interval)
    return dict(zip(_FIELDS, numbers, strict=True))


def to_json(
    truth_set: TruthSet, agreement: Agreement, results: Sequence[Credit], parts: Parts
) -> dict[str, Any]:
    """Return all figures, what they are of, and the truth's digest. Undefined figures are None."""
    return {
        "about": dict(truth_set.about),
        "digest": truth_set.digest,
        "options": asdict(truth_set.truth.options),
        "cost": asdict(truth_set.truth.cost),
        "tasks": len(truth_set.tasks),
        "turns": len(truth_set.truth.turns),
        **_plain(agreement),
        "missing": {c.choice.name: list(c.missing) for c in results if c.advantage is None},
        "parts": {
            by: {part: _plain(own) for part, own in found.items()} for by, found in parts.items()
        },
    }


def _plain(agreement: Agreement) -> dict[str, Any]:
    def known(values: Mapping[str, float]) -> dict[str, float | None]:
        return {name: v if math.isfinite(v) else None for name, v in values.items()}

    evidence = agreement.evidence
    return {
        "evidence": {
            "success": evidence.success,
            "groups": evidence.groups,
            "mixed_groups": evidence.mixed,
            "clear_turns": evidence.clear,
            "minimum": asdict(evidence.minimum),
            "of": {title: asdict(count) for title, count in evidence.of.items()},
            "warnings": evidence.warnings,
        },
        "ceilings": known(agreement.ceilings),
        "half_ceilings": known(agreement.half_ceilings),
        "methods": {
            name: {title: known(_flat(figure)) for title, figure in figures.items()}
            for name, figures in agreement.figures.items()
        },
    }


GROUP_SIZE = "group size"
"""The name of what `by_group_size` parts by."""


@dataclass(frozen=True, slots=True)
class Scores:
    """The figures of an audit."""

    results: list[Credit]
    agreement: Agreement
    parts: Parts


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
