"""An audit as text: a table for the terminal, CSV, and JSON with all digits."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from agentgyms.registration import short_name
from harness.audit.agreement import CLEAR, NAMES, Agreement, Figure
from harness.audit.truth_sets import TruthSet
from harness.reporting.credit_view.compare import Credit
from harness.reporting.results.setting import Setting

_COLUMN: Final = 21
_METHOD: Final = 16
LEGEND: Final = (
    "spearman: the order of all turns; within_rollouts, within_states: of the turns of a rollout, "
    "of equal states; gradient: cosine of the policy gradients.\nsign: of the turns whose truth is "
    "clear. precision, recall: the 10 % of turns with the most credit, as clearly good ones.\n"
    "In brackets 95 % intervals by bootstrap over tasks. ceiling: what the truth reaches if it is "
    "measured a second time;\nhalf's ceiling: the same of half of the continuations, by which "
    "oracle and vineppo are credited, and compared with the other half."
)


def title(truth_set: TruthSet) -> str:
    """Return the environment, whose tasks they are, and the policy."""
    about = truth_set.about
    policy = dict(about.get("policy", {}))
    noise = f", noise {policy['noise']:g}" if "noise" in policy else ""
    name = short_name(str(about.get("environment", "rollouts")))
    played = Setting(name, str(about.get("split", "")), data=str(about.get("data") or ""))
    return f"{played.title}; {policy.get('name', 'policy')}{noise}"


def summary(truth_set: TruthSet, agreement: Agreement) -> str:
    """Return what was measured, in two lines."""
    truth = truth_set.truth
    sizes = f"{len(truth_set.tasks)} tasks, {truth.turns.rollout[-1] + 1} rollouts"
    success = truth.turns.success[truth.turns.starts].mean()
    cost, options = truth.cost, truth.options
    return (
        f"{title(truth_set)}; {sizes}, {len(truth.turns):,} turns, "
        f"success {success:.0%}\ntruth: {options.continuations} continuations of each state "
        f"({cost.continuations:,} in all, {cost.steps:,} steps, {cost.tokens:,} tokens, "
        f"{cost.seconds:.0f} s), reward {options.reward}, gamma {options.gamma:g}; "
        f"{agreement.clear:.1%} of turns clear (at least {CLEAR:g} and two standard errors)"
    )


def table(agreement: Agreement, results: Sequence[Credit]) -> str:
    """Return a line for each method, and the ceilings."""
    lines = [f"{'method':{_METHOD}}" + "".join(f"{name:>{_COLUMN}}" for name in NAMES)]
    for name, figures in agreement.figures.items():
        cells = "".join(f"{_cell(figures[title]):>{_COLUMN}}" for title in NAMES)
        lines.append(f"{name:{_METHOD}}{cells}")
    for name, ceilings in _ceilings(agreement).items():
        cells = "".join(f"{number(ceilings.get(title, math.nan)):>{_COLUMN}}" for title in NAMES)
        lines.append(f"{name:{_METHOD}}{cells}")
    lines += [
        f"{credit.choice.name:{_METHOD}}  not computed: needs {', '.join(credit.missing)}"
        for credit in results
        if credit.advantage is None
    ]
    return "\n".join(lines)


def _ceilings(agreement: Agreement) -> dict[str, Mapping[str, float]]:
    """Return the ceilings, and those of methods that are credited by half of the continuations."""
    ceilings = {"ceiling": agreement.ceilings}
    return ceilings | ({"half's ceiling": h} if (h := agreement.half_ceilings) else {})


def _cell(figure: Figure) -> str:
    if not math.isfinite(figure.value):
        return "–"
    low, high = figure.interval
    return f"{figure.value:.2f} ({low:.2f}, {high:.2f})"


def number(value: float) -> str:
    """Return a figure with two decimals; "–" where it is not defined."""
    return f"{value:.2f}" if math.isfinite(value) else "–"


def to_csv(agreement: Agreement) -> str:
    """Return a row for each method and figure; ceilings are those of the method `ceiling`."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["method", "figure", *_FIELDS])
    for name, figures in agreement.figures.items():
        for title, figure in figures.items():
            writer.writerow([name, title, *_flat(figure).values()])
    for name, ceilings in _ceilings(agreement).items():
        for title, value in ceilings.items():
            writer.writerow([name, title, value, *[""] * (len(_FIELDS) - 1)])
    return out.getvalue()


_FIELDS: Final = ("value", "low", "high", "over_first", "over_first_low", "over_first_high")


def _flat(figure: Figure) -> dict[str, float]:
    numbers = (figure.value, *figure.interval, figure.over_first, *figure.over_first_interval)
    return dict(zip(_FIELDS, numbers, strict=True))


def to_json(truth_set: TruthSet, agreement: Agreement, results: Sequence[Credit]) -> dict[str, Any]:
    """Return all figures, what they are of, and the truth's digest. Undefined figures are None."""

    def known(value: float) -> float | None:
        return value if math.isfinite(value) else None

    return {
        "about": dict(truth_set.about),
        "digest": truth_set.digest,
        "options": asdict(truth_set.truth.options),
        "cost": asdict(truth_set.truth.cost),
        "tasks": len(truth_set.tasks),
        "turns": len(truth_set.truth.turns),
        "clear": agreement.clear,
        "ceilings": {name: known(value) for name, value in agreement.ceilings.items()},
        "half_ceilings": {name: known(value) for name, value in agreement.half_ceilings.items()},
        "methods": {
            name: {
                title: {key: known(value) for key, value in _flat(figure).items()}
                for title, figure in figures.items()
            }
            for name, figures in agreement.figures.items()
        },
        "missing": {c.choice.name: list(c.missing) for c in results if c.advantage is None},
    }
