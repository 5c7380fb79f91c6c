"""Does a figure before training foretell the improvement? Softmax tables, exact values.

    python benchmarks/studies/foretell.py chain-stop --seeds 8

Every estimator trains the policies of a world from the same starts, those of the seeds, by steps of
one length along its gradient, so that its scale does not matter. The improvement is that of the
exact value. Before it the bias laboratory measures each estimator. The rank correlation of a figure
with the improvement is the mean over the starts; its interval is Student's over them.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from harness.audit import bias
from harness.audit.bias.sampling import draw
from harness.audit.ranks import Ranks, correlation
from harness.evaluation.statistics import mean_and_std, student_interval
from harness.reporting.credit_view import bias_text, compare
from harness.reporting.table import Table
from harness.types.arrays import Floats

FIGURES = ("aligned", "bias alone", "noise alone")
"""What foretells: the cosine of one step's gradient with the exact one, by bias and noise, and by
each of both alone."""


def value(world: bias.World) -> float:
    """Return the exact share of successes."""
    return float(np.mean([task.value() for task in world.tasks]))


def trained(
    world: bias.World, estimate: bias.Estimate, given: argparse.Namespace, seed: int
) -> bias.World:
    """Return the world with the policy after training."""
    rng = np.random.default_rng(seed)
    for _ in range(given.steps):
        drawn = draw(world, 1, given.groups, given.group_size, rng)
        gradient = drawn.gradients(estimate(drawn.turns), 1)[0]
        length = float(np.linalg.norm(gradient))
        if length <= 1e-12:
            continue
        place, tasks = 0, []
        for task in world.tasks:
            own = gradient[place : place + task.logits.size].reshape(task.logits.shape)
            tasks.append(replace(task, logits=task.logits + given.rate * own / length))
            place += task.logits.size
        world = replace(world, tasks=tuple(tasks))
    return world


def foretold(cell: bias.Cell) -> dict[str, float]:
    """Return what the figures foretell, larger for better; 0 where there is no signal."""
    found = cell.bias
    if not math.isfinite(found.off) or found.scale < 0:
        return dict.fromkeys(FIGURES, 0.0)
    both = 1 / math.sqrt(1 + found.off**2 + found.noise**2)
    parts = (found.off, found.noise)
    return dict(zip(FIGURES, (both, *(1 / math.sqrt(1 + one**2) for one in parts)), strict=True))


def rank_correlation(one: Floats, two: Floats) -> float:
    """Return Spearman's correlation."""
    weights = np.ones(len(one))
    return correlation(Ranks(one).of(weights), Ranks(two).of(weights), weights)


def measured(
    seed: int, estimators: Mapping[str, bias.Estimate], given: argparse.Namespace
) -> dict[str, tuple[dict[str, float], float]]:
    """Return each estimator's figures at a start, and its improvement."""
    world = bias.make(given.world, given.turns, seed)
    cells, _ = bias.measure(
        world,
        estimators,
        size=given.group_size,
        steps=given.measured,
        groups=given.groups * len(world.tasks),
        seed=seed,
    )
    before = value(world)
    return {
        cell.name: (
            foretold(cell),
            100 * (value(trained(world, estimators[cell.name], given, seed)) - before),
        )
        for cell in cells
    }


def main() -> None:
    """Print each method's figures and improvement, and the rank correlations."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("world", choices=bias.NAMES)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--steps", type=int, default=60, help="of training")
    parser.add_argument("--rate", type=float, default=0.15, help="length of a step")
    parser.add_argument("--turns", type=int, default=0)
    parser.add_argument("--groups", type=int, default=4, help="of a task in a step")
    parser.add_argument("--group-size", type=int, default=8)
    parser.add_argument("--measured", type=int, default=200, help="steps of the laboratory")
    given = parser.parse_args()
    estimators = bias_text.estimators(compare.choose())
    starts = [measured(seed, estimators, given) for seed in range(given.seeds)]
    # Estimators that are one on such a world, as those of trees without branches, count once.
    first = {
        str([f"{start[name][1]:.6f}" for start in starts]): name for name in reversed(starts[0])
    }
    starts = [{name: start[name] for name in first.values()} for start in starts]
    rows = []
    for name in starts[0]:
        figures = [f"{np.mean([s[name][0][one] for s in starts]):.3f}" for one in FIGURES]
        mean, std = mean_and_std([s[name][1] for s in starts])
        rows.append([name, *figures, f"{mean:+.1f}", f"{std:.1f}"])
    rows.sort(key=lambda row: -float(row[-2]))
    print(Table(["Method", *FIGURES, "Improvement", "Std"], rows).markdown(), "\n")
    told = []
    for one in FIGURES:
        pairs = [np.array([(f[one], better) for f, better in s.values()]) for s in starts]
        found = [rank_correlation(pair[:, 0], pair[:, 1]) for pair in pairs]
        low, high = student_interval(found) or (math.nan, math.nan)
        told.append([one, f"{np.mean(found):.2f}", f"{low:.2f} to {high:.2f}"])
    print(Table(["Figure", "Rank correlation", "95 % interval"], told).markdown())


if __name__ == "__main__":
    main()
