"""Compares what the five papers say of training with small runs: the table of docs/papers_small.md.

python benchmarks/studies/papers_small.py runs/papers_small --scorer embedding:all-minilm
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from harness.annotators import semantic
from harness.credit import diagnostics, registry
from harness.credit.similarity import Scorer
from harness.credit.table import LOOKUPS, TurnTable
from harness.evaluation.statistics import student_interval
from harness.reporting.credit_view import recordings
from harness.rollouts import rollout_files
from harness.runs import metrics
from harness.types.rollout import Rollout

HISTORIES = (1, 2, 3, 4, 5)
"""SALT's history lengths in its Figures 6 and 7."""
SIZES = (4, 8)
"""Members of a group in ECPO's Figure 4; the smaller groups are parts of the larger ones."""
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "chronological": {"order": "temporal"},
    "repeated": {"monotone": False},
    "shortest": {"reference": "shortest"},
}
"""SCPO's choices in its Table 2, by what each changes."""

Series = Mapping[str, np.ndarray[Any, Any]]
"""Figures of a run by name, each with one value for each step."""


def logged(folder: Path) -> Series:
    """Return the figures that a run logged at every step."""
    lines = [line for line in metrics.read(folder) if "rollout/turns" in line]
    # A step in which no action calls an API has no share of calls: it is 0.
    calls = {f"credit/{name}_calls": 0.0 for name in LOOKUPS}
    names = sorted(set.intersection(*(set(line | calls) for line in lines)))
    return {name: np.array([float((calls | line)[name]) for line in lines]) for name in names}


def recomputed(folder: Path, scorer: Scorer) -> Series:
    """Return figures of several methods on the rollouts that a run kept, step by step."""
    found: dict[str, list[float]] = {}
    for file in sorted((folder / "rollouts").glob("step-*.jsonl*")):
        for name, value in figures(rollout_files.read(file).rollouts, scorer):
            found.setdefault(name, []).append(value)
    if not found:
        raise SystemExit(f"{folder} kept no rollouts: train it with --set run.keep_rollouts=6")
    return {name: np.array(values) for name, values in found.items()}


def figures(rollouts: Sequence[Rollout], scorer: Scorer) -> Iterator[tuple[str, float]]:
    """Yield the figures of one step's rollouts, with the papers' own settings."""
    for size in SIZES:
        turns = table(rollouts, size)
        yield f"rho {size}", of("ecpo", turns)["reliability"]
        ecpo, gigpo = (np.ptp(advantage(name, turns)) for name in ("ecpo", "gigpo"))
        yield f"range {size}", float(ecpo / gigpo) if gigpo else 1.0
        yield f"divergent {size}", diagnostics.divergent_anchors(turns)
    for history in HISTORIES:
        yield f"merged {history}", of("salt", turns, history=history)["merge_rate"]
    for name, changed in VARIANTS.items():
        told = of("scpo", turns, scorer=scorer, **changed)
        yield f"credited {name}", told["credited_turns"]
        yield f"auxiliary {name}", told["auxiliary_reward"]


def table(rollouts: Sequence[Rollout], size: int) -> TurnTable:
    """Return the turns of the first `size` members of each group."""
    groups: dict[int, list[Rollout]] = {}
    for rollout in rollouts:
        groups.setdefault(rollout.group, []).append(rollout)
    chosen = [rollout for members in groups.values() for rollout in members[:size]]
    return recordings.from_rollouts(chosen, "kept rollouts", reward="success").turns


def of(method: str, turns: TurnTable, **changed: Any) -> dict[str, float]:
    """Return an estimator's own figures with its paper's settings, some of them changed."""
    settings = registry.layers(method, registry.preset("paper", method))[0][1]
    return diagnostics.layer_figures(method, turns, {**settings, **changed})


def advantage(method: str, turns: TurnTable) -> np.ndarray[Any, Any]:
    """Return advantages with the paper's settings. Shape [N]."""
    return registry.get(method)(turns, **registry.preset("paper", method))


def rise(values: np.ndarray[Any, Any]) -> float:
    """Return how far the mean of a run's last third is above that of its first third."""
    part = max(1, len(values) // 3)
    return float(values[-part:].mean() - values[:part].mean())


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, and what shows it in the runs of one seed.

    Attributes:
        place: The place in the paper.
        text: The claim.
        runs: Names of the runs, in the order of the arguments of `shown`.
        shown: Returns a number that is above 0 where the claim holds.
        scale: The factor of the number on the page.
    """

    place: str
    text: str
    runs: tuple[str, ...]
    shown: Callable[..., float]
    scale: float = 1.0

    def row(self, seeds: Sequence[Mapping[str, Series]]) -> str:
        """Return the line of the table."""
        values = [self.scale * self.shown(*(seed[name] for name in self.runs)) for seed in seeds]
        told = f"| {self.place} | {self.text} | {np.mean(values):+.3g}"
        interval = student_interval(values)
        if interval is None:
            return f"{told} | | one seed |"
        low, high = interval
        verdict = "holds" if low > 0 else "the opposite" if high < 0 else "not told apart from 0"
        return f"{told} | {low:+.3g} to {high:+.3g} | {verdict} |"


def _coarser(kept: Series) -> float:
    """Return the smallest fall of SALT's merge rate from one history length to the next."""
    rates = [kept[f"merged {history}"].mean() for history in HISTORIES]
    return float(min(a - b for a, b in pairwise(rates)))


def _gap(name: str, other: str) -> Callable[[Series], float]:
    return lambda kept: float((kept[name] - kept[other]).mean())


def _behaviour(name: str, sign: int) -> Callable[[Series, Series], float]:
    return lambda gvpo, other: float(sign * (gvpo[name].mean() - other[name].mean()))


def claims() -> Iterator[Claim]:
    """Yield the claims in the papers' order."""
    yield from _on_kept_rollouts()
    yield Claim(
        "OPRL Figure 5, left",
        "the mean step reward rises in training",
        ("oprl",),
        lambda run: rise(run["credit/process_reward_mean"]),
    )
    yield Claim(
        "OPRL Figure 5, left",
        "episode and step rewards rise together: their correlation over the steps",
        ("oprl",),
        lambda run: float(
            np.corrcoef(run["credit/process_reward_mean"], run["credit/episode_return"])[0, 1]
        ),
    )
    for other, name in (("grpo", "GRPO"), ("dr_grpo", "Dr.GRPO")):
        for key, text, sign in (
            ("credit/failed_turns", "fails in fewer turns", -1),
            ("credit/show_api_doc_calls", "reads documentation in more turns", 1),
            ("credit/show_api_descriptions_calls", "reads descriptions in more turns", 1),
        ):
            yield Claim(
                "GVPO Figure 4",
                f"GVPO {text} than {name}, % of turns",
                ("gvpo", other),
                _behaviour(key, sign),
                100,
            )


def _on_kept_rollouts() -> Iterator[Claim]:
    """Yield the claims that the kept rollouts of a run with GiGPO show."""
    own = ("kept",)
    text = "divergent anchors become more in training, % of repeated states"
    yield Claim("ECPO Figure 1", text, own, lambda kept: rise(kept["divergent 8"]), 100)
    text = "groups of 4 have more divergent anchors than groups of 8, % of repeated states"
    yield Claim("ECPO section 1", text, own, _gap("divergent 4", "divergent 8"), 100)
    text = "rho is larger in groups of 8 than of 4"
    yield Claim("ECPO Figure 4a", text, own, _gap("rho 8", "rho 4"))
    text = "shrinkage narrows GiGPO's range of advantages in groups of 4, % of the range"
    yield Claim("ECPO Figure 4b", text, own, lambda kept: float(1 - kept["range 4"].mean()), 100)
    text = "and narrows it more there than in groups of 8, % of the range"
    yield Claim("ECPO Figure 4b", text, own, _gap("range 8", "range 4"), 100)
    text = "credited turns of a failed rollout become more in training"
    yield Claim("SCPO Figure 7", text, own, lambda kept: rise(kept["credited default"]))
    text = "the mean auxiliary reward of a turn rises in training"
    yield Claim("SCPO Figure 7", text, own, lambda kept: rise(kept["auxiliary default"]))
    for name, text, sign in (
        ("chronological", "the reordered matcher credits more turns than the chronological one", 1),
        ("repeated", "without monotonicity a failed rollout has more credited turns", -1),
        ("shortest", "the longest success credits more turns than the shortest", 1),
    ):
        first, second = ("default", name)[::sign]
        shown = _gap(f"credited {first}", f"credited {second}")
        yield Claim("SCPO Table 2 and Figure 7", text, own, shown)
    text = "the merge rate falls with each longer history: the smallest fall, % of turns"
    yield Claim("SALT Figure 6", text, own, _coarser, 100)
    text = "the merge rate rises in training at a history of 3, % of turns"
    yield Claim("SALT Figure 6", text, own, lambda kept: rise(kept["merged 3"]), 100)


def read(folder: Path, seed: int, scorer: Scorer) -> dict[str, Series]:
    """Return the figures of one seed's runs."""
    names = ("oprl", "gvpo", "grpo", "dr_grpo")
    own = folder / f"seed-{seed}"
    return {"kept": recomputed(own / "gigpo", scorer)} | {n: logged(own / n) for n in names}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="The folder of the runs.")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--scorer", default="embedding", help="SCPO's, as scpo.scorer names it.")
    given = parser.parse_args()
    scorer = semantic.open_scorer(given.scorer, "cpu")
    seeds = []
    for seed in given.seeds:
        print(f"seed {seed}: reading its runs", flush=True)
        seeds.append(read(given.folder, seed, scorer))
    print("| place | claim | figure | 95 % over seeds | verdict |")
    print("|---|---|---|---|---|")
    for claim in claims():
        print(claim.row(seeds))


if __name__ == "__main__":
    main()
