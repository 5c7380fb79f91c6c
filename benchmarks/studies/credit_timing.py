"""Seconds that each method's credit takes, and SCPO's by stages (its Table 5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from time import perf_counter
from typing import Any

from harness import credit
from harness.credit import alignment, diagnostics
from harness.credit.estimators import scpo
from harness.credit.registry import layers
from harness.credit.similarity import Cached, PairCache, Scorer, pair_scorer
from harness.credit.table import TurnTable
from harness.reporting.credit_view.compare import Credit
from harness.reporting.table import Table
from harness.types.arrays import Floats
from harness.types.hyperparameters import keyword_defaults


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of a method's credit."""

    name: str
    seconds: float
    pairs: int | None = None  # pairs of texts that were scored in it; None where none are


class Stopwatch(Scorer):
    """Counts pairs and seconds of another scorer."""

    def __init__(self, scorer: Scorer) -> None:
        """Scores with `scorer`; of a cached one, what it caches, so that nothing is known."""
        self._scorer = scorer.scorer if isinstance(scorer, Cached) else scorer
        self.seconds, self.count = 0.0, 0

    def pairs(self, texts_a: Sequence[str], texts_b: Sequence[str]) -> Floats:
        """Return the similarity of each text with its counterpart. Shape [n]."""
        start = perf_counter()
        scores = self._scorer.pairs(texts_a, texts_b)
        self.seconds += perf_counter() - start
        self.count += len(texts_a)
        return scores


def text(tables: Sequence[TurnTable], results: Sequence[Credit]) -> str:
    """Return median seconds over tables of each computed method, and the stages of SCPO.

    A method is computed once more on each table. Scores of SCPO's models are made anew; those
    of other methods' models may be cached.
    """
    rows = []
    for result in results:
        if result.advantage is None:
            continue
        runs = [_stages(turns, result) for turns in tables]
        medians = [_median(stages) for stages in zip(*runs, strict=True)]
        total = median(sum(stage.seconds for stage in stages) for stages in runs)
        rows.append([result.choice.name, f"{total:.4f}"])
        for stage in filter(lambda stage: stage.name, medians):
            share = f"{100 * stage.seconds / total:.1f} %"
            pairs = [] if stage.pairs is None else [str(stage.pairs)]
            rows.append([f"  {stage.name}", f"{stage.seconds:.4f}", share, *pairs])
    return Table(("method", "seconds", "share", "pairs"), rows).text("20", ">12", ">9", ">9")


def _stages(turns: TurnTable, result: Credit) -> list[Stage]:
    """Return the stages of a method; one without a name for those that have none."""
    if result.choice.estimator == "scpo":
        return scpo_stages(turns, result.settings)
    estimator = credit.get(result.choice.estimator)
    return [Stage("", _seconds(lambda: estimator(turns, **result.settings)))]


def _median(stages: Sequence[Stage]) -> Stage:
    pairs = None if stages[0].pairs is None else round(median(s.pairs or 0 for s in stages))
    return Stage(stages[0].name, median(stage.seconds for stage in stages), pairs)


def _seconds(work: Callable[[], Any]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def scpo_stages(turns: TurnTable, settings: Mapping[str, Any]) -> list[Stage]:
    """Return the stages of SCPO's credit; the last are its figures, which runs log."""
    watch = Stopwatch(pair_scorer(settings["scorer"]))
    known = Cached(watch)
    cache, levels = PairCache(known), {key: settings[key] for key in ("theta", "lam", "monotone")}
    started = perf_counter()
    chosen = {key: settings[key] for key in keyword_defaults(alignment.sibling_pairs)}
    pairs = alignment.sibling_pairs(turns, **chosen)
    tables = alignment.reference_tables(turns, pairs, cache, settings["theta"])
    own_seconds, own_pairs = watch.seconds, watch.count
    aligned = alignment.credited_pairs(turns, pairs, tables, cache, **levels)
    matching = perf_counter() - started - watch.seconds
    (_, own), (name, below), *_ = layers("scpo", settings)

    def shape() -> Floats:
        bonus = settings["alpha"] * scpo.credit(turns, aligned)
        return credit.get(name)(replace(turns, return_bonus=bonus), **below)

    shaping = _seconds(shape)
    figures = _seconds(lambda: diagnostics.layer_figures("scpo", turns, {**own, "scorer": known}))
    return [
        Stage("pairs", watch.seconds - own_seconds, watch.count - own_pairs),
        Stage("self-similarity", own_seconds, own_pairs),
        Stage("matching", matching),
        Stage("base on new returns", shaping),
        Stage("figures", figures),
    ]
