"""ECPO's mean rho by the size of the group, under readings of what the paper leaves open.

    python benchmarks/studies/rho.py 'runs/rho-4/seed-*/ecpo' 'runs/rho-8/seed-*/ecpo'

docs/credit.md has the commands that make these runs. `FOLDERS:4` takes the first four members of
each group. The interval is of the second mean less the first one: 95 %, by drawing groups.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from harness.credit import TurnTable
from harness.credit.estimators.ecpo import ecpo
from harness.credit.evidence import Calibration, Evidence, evidence
from harness.credit.shared import STEP_RETURNS, step_returns
from harness.rollouts import rollout_files
from harness.types.hyperparameters import keyword_defaults

READINGS: dict[str, dict[str, Any]] = {
    "as trained": {},
    "tau 8": {"tau": 8.0},
    "tau 32": {"tau": 32.0},
    "saturation exp": {"saturation": "exp"},
    "saturation exp, tau 8": {"saturation": "exp", "tau": 8.0},
    "saturation none": {"saturation": "none"},
    "between shrunk": {"between": "shrunk"},
    "between shrunk, tau 8": {"between": "shrunk", "tau": 8.0},
    "sigma weighted": {"sigma": "weighted"},
    "sigma raw": {"sigma": "raw"},
    "min_depth 3": {"min_depth": 3},
    "floor 0.3": {"floor": 0.3},
    "gamma 1": {"gamma": 1.0},
    "penalty 0.02": {"invalid_penalty": 0.02},
    "penalty 0.02, tau 8": {"invalid_penalty": 0.02, "tau": 8.0},
    "penalty 0.02, between shrunk": {"invalid_penalty": 0.02, "between": "shrunk"},
}
"""What each reading changes of the settings that the run was trained with."""

MEANS = ("repeated states", "StrictValid states", "turns in repeated states")
DRAWS = 2000


@dataclass(frozen=True)
class Rollouts:
    """The kept rollouts of a run, as one table, and the settings of its credit."""

    name: str
    turns: TurnTable
    credit: dict[str, Any]

    def sums(self, changes: dict[str, Any]) -> np.ndarray:
        """Return the sum of weights and of rho for each mean and group. Shape [3, 2, groups]."""
        given = {**keyword_defaults(ecpo), **self.credit, **changes}
        returns = step_returns(self.turns, *(given[key] for key in STEP_RETURNS))
        return _sums(self.turns, evidence(self.turns, returns, Calibration.of(given)))


def read(given: str) -> Rollouts:
    """Return the rollouts of all runs of a pattern `FOLDERS` or `FOLDERS:MEMBERS`."""
    pattern, _, members = given.partition(":")
    root = Path(Path(pattern).anchor or ".")
    folders = sorted(root.glob(pattern.removeprefix(str(root))))
    if not folders:
        raise SystemExit(f"no folder is named {pattern}")
    config = json.loads((folders[0] / "config.json").read_text())
    method, size = config["method"], config["rollout"]["group_size"]
    rollouts, groups = [], 0
    for file in [file for run in folders for file in sorted(run.glob("rollouts/step-*.jsonl*"))]:
        kept = [one for one in rollout_files.read(file).rollouts if one.turns and not one.error]
        rollouts += [
            replace(one, group=one.group + groups)
            for one in kept
            if not members or one.member < int(members)
        ]
        groups += 1 + max(one.group for one in kept)
    turns = TurnTable.from_rollouts(
        rollouts, reward=method["reward"], reward_scale=method["reward_scale"]
    )
    name = f"first {members} of {size}" if members else f"groups of {size}"
    return Rollouts(name, turns, method["credit"])


def _sums(turns: TurnTable, found: Evidence) -> np.ndarray:
    first = np.unique(found.anchor, return_index=True)[1]
    group = turns.group[first]  # of each state
    repeated = (found.visits > 1).astype(float)
    weights = (repeated, found.strict_valid.astype(float), repeated * found.visits)
    return np.array(
        [[np.bincount(group, w), np.bincount(group, w * found.reliability)] for w in weights]
    )


def mean(sums: np.ndarray) -> np.ndarray:
    """Return the means over groups' sums. Shape [3, 2, groups] -> [3]."""
    weight, total = sums.sum(-1).T
    return total / weight


def interval(first: np.ndarray, second: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the ends of the 95 % interval of the second means less the first. Shape [2, 3]."""
    drawn = [
        mean(second[..., rng.integers(0, second.shape[-1], second.shape[-1])])
        - mean(first[..., rng.integers(0, first.shape[-1], first.shape[-1])])
        for _ in range(DRAWS)
    ]
    return np.percentile(drawn, (2.5, 97.5), axis=0)


def main() -> None:
    """Print a table for each mean: a row for each reading, a column for each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", metavar="FOLDERS[:MEMBERS]")
    runs = [read(given) for given in parser.parse_args().runs]
    rng = np.random.default_rng(0)
    rows = []
    for name, changes in READINGS.items():
        sums = [run.sums(changes) for run in runs]
        ends = interval(sums[0], sums[1], rng) if len(runs) > 1 else np.zeros((2, 3))
        rows.append((name, [mean(one) for one in sums], ends))
    for place, what in enumerate(MEANS):
        print(f"\nmean rho over {what}\n")
        print(f"| reading | {' | '.join(run.name for run in runs)} | second - first |")
        print("|---" * (len(runs) + 2) + "|")
        for name, means, ends in rows:
            cells = [f"{one[place]:.3f}" for one in means]
            cells.append(f"{ends[0, place]:+.3f} to {ends[1, place]:+.3f}")
            print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
