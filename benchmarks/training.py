"""Speed of training: rollouts and updates beside what they are made of, and beside others.

    AGENTGYMS_TRL_PYTHON=.venv-trl/bin/python python benchmarks/training.py [--rounds 5] [--quick] \
        [--only NAME]

All on the CPU with one thread, on ALFWorld's generated games with the tiny model of the recipe
`alfworld-tiny` after its warm start, which is made once and kept in the system's temporary folder.

- rollouts: whole episodes, beside the bare completer fed with the very same prompts and seeds, 64
  under way at any time. Twice: with the recipe's prompts of some 55 tokens and answers of 5, and
  with the default prompts, of hundreds of tokens. The bound is that of the default prompts: what an
  episode costs beside its model hardly depends on the model, and the recipe's is the smallest.
- lock step: 16 tasks x 8 episodes, 50 turns at most, beside loops in which all wait for all at
  every turn: as verl-agent does it, generating for episodes that have ended too until the last one
  has, and without those. Twice: with the lengths of experts' episodes, whose actions are played
  whatever the model answers, and with those of the policy's own play.
- generators: the completer beside transformers' `generate` in batches of 64, and its continuous
  batching, on prompts of the rollouts.
- update: the learner on sequences of which no two are equal, beside bare loops on the batches
  packed before; what merging equal sequences spares in a step of the recipe stands apart.
- prefixes: how many of a step's tokens are repeated prefixes, per environment and context, and the
  update that shares them (`optimizer.packing = "shared"`) beside the one that does not.
- long_prompts: time and memory of generating, rescoring and updating with prompts of 4k tokens and
  a vocabulary of 151,936, beside bare loops and the least memory; see `training_memory.py`.
- trl: the update beside TRL's GRPOTrainer, in the Python that AGENTGYMS_TRL_PYTHON names: the same
  weights, sequences, advantages, optimizer and budget of a micro-batch. Losses must agree.

Both sides of a ratio take turns in every round; ratios are medians over rounds. Those of CPU time
count; what else runs on the machine tells in the ones by the clock. A bound that is missed makes
the exit code 1.
"""

from __future__ import annotations

import argparse
import logging
import os
import statistics
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
import training_memory
import training_prefixes as prefixes
import training_update as update
from training_lock_step import lock_step
from training_rates import DEMO, QUICK, THINK, Call, Rate, Setting, median_ratio, warm_policy
from training_rollouts import generators, rollouts_and_bare

LEAST_OF_BARE_COMPLETER, LEAST_OVER_LOCK_STEP = 0.95, 1.5
LEAST_OF_BARE_LOOP, LEAST_OVER_TRL = 0.9, 1.0
MOST_LOSS_APART = 1e-4
MOST_OVER_LEAST_MEMORY = 1.25
NUM_PROMPTS = 128


class Benchmarks:
    """What is measured, in order.

    Args:
        rounds: Of every comparison; slow ones take half.
        quick: A shorter warm start and fewer sequences.
    """

    def __init__(self, rounds: int, *, quick: bool) -> None:
        """Measure nothing yet."""
        self._rounds = rounds
        self._warm = QUICK if quick else ()
        self._rows = 256 if quick else 512
        self._calls: list[Call] = []
        self.missed: list[str] = []

    def rollouts(self) -> None:
        """Rollouts beside the bare completer."""
        head("rollouts at 64 concurrent episodes", "tokens generated")
        self._rollouts(DEMO, None)
        self._rollouts(THINK, LEAST_OF_BARE_COMPLETER)

    def _rollouts(self, setting: Setting, least: float | None) -> None:
        rates, calls = rollouts_and_bare(setting, self._rounds, self._of(setting))
        self._calls = self._calls or calls
        played, bare = zip(*rates, strict=True)
        asked = [call.completion.usage for call in calls]
        prompt = statistics.mean(usage.prompt for usage in asked)
        said = statistics.mean(usage.response for usage in asked)
        print(f"| bare completer, {setting.label} {prompt:.0f} + {said:.1f} tokens | ", end="")
        print(f"{speed(bare)} | 1 | | |")
        self._row("rollouts", played, bare, least)

    def lock_step(self) -> None:
        """Collecting beside lock step."""
        self._lock_step("lengths of expert episodes", LEAST_OVER_LOCK_STEP, guided=True)
        self._lock_step("lengths of the policy's own", None, guided=False)

    def _lock_step(self, label: str, least: float | None, *, guided: bool) -> None:
        rounds = max(1, self._rounds // 2)
        made = lock_step(DEMO, rounds, self._of(DEMO), guided=guided)
        rates, turns = made["rates"], made["turns"]
        head(f"collecting 128 episodes, {label}", "episodes")
        for name in ("until the last ends", "finished ones dropped"):
            print(f"| lock step, {name} | {speed(rates[name])} | 1 | | |")
            bound = least if name == "until the last ends" else None
            self._row("no lock step", rates["free"], rates[name], bound)
        print(
            f"\nTurns of an episode: {statistics.mean(turns):.1f} on average, quartiles "
            f"{', '.join(f'{q:.0f}' for q in statistics.quantiles(turns, n=4))}, at most "
            f"{max(turns)}; {made['same']:.0%} of the episodes are the same in lock step."
        )

    def generators(self) -> None:
        """The completer beside transformers' own generators."""
        calls = self._recorded()[:NUM_PROMPTS]
        policy = warm_policy(DEMO.config(*self._of(DEMO)))
        made = generators(calls, policy, self._rounds)
        head(f"generating from {len(calls)} prompts of rollouts", "tokens generated")
        ours = made.pop("HFCompleter")
        for name, rates in made.items():
            print(f"| {name} | {speed(rates)} | 1 | | |")
            self._row("HFCompleter", ours, rates, None)

    def update(self) -> None:
        """The update beside bare loops."""
        rows, policy = self._sequences()
        made = update.updates(rows, policy, self._rounds)
        head(f"update from {len(rows)} sequences", "tokens")
        ours = made.pop("update")
        for name, rates in made.items():
            print(f"| bare loop: {name} | {speed(rates)} | 1 | | |")
            self._row("update", ours, rates, LEAST_OF_BARE_LOOP)
        merged = update.merging(DEMO, self._of(DEMO), max(1, self._rounds // 2))
        rates = merged["rates"]
        print(f"| bare loop, a step of the recipe | {speed(rates['bare'])} | 1 | | |")
        self._row("update, equal sequences merged", rates["update"], rates["bare"], None)
        print(f"\nOf the tokens of that step {merged['left']:.0%} are left after merging.")

    def prefixes(self) -> None:
        """Tokens and time of updates that share prefixes."""
        print("\n| a step of two groups of eight | tokens | no two sequences equal | ", end="")
        print("prefixes shared | the same, four mini-batches |\n|---|--:|--:|--:|--:|")
        timed = []
        for name in prefixes.RECIPES:
            steps = prefixes.Steps(name)
            for context in prefixes.CONTEXTS:
                for label, kind in prefixes.ANSWERS.items():
                    rows = steps.rows(context, **kind)
                    one = prefixes.Shares.of(rows)
                    print(
                        f"| {name}, {context}, {label} | {one.tokens:,} | {one.distinct:.0%} | ",
                        end="",
                    )
                    print(f"{one.nodes:.0%} | {one.nodes_of_four:.0%} |", flush=True)
                    if name in prefixes.TIMED and label in prefixes.TIMED[name]:
                        timed.append((f"{name}, {context}, {label}", rows, steps.policy))
        for label, rows, policy in timed:
            rates = prefixes.updates(rows, policy, max(1, self._rounds // 2))
            head(f"update, {label}", "tokens")
            print(f"| one by one | {speed(rates['one by one'])} | 1 | | |")
            self._row("prefixes shared", rates["shared"], rates["one by one"], None)

    def long_prompts(self) -> None:
        """Time and memory with long prompts and a large vocabulary."""
        print("\n| 126 M weights, 2 x 4,096 tokens | CPU s | memory, GB | of the least |", end="")
        print("\n|---|--:|--:|--:|")
        for part in training_memory.PARTS:
            least, held = training_memory.minimum(part), 0.0
            for side in training_memory.SIDES:
                taken = training_memory.measured(side, part)
                held = taken.peak / least
                print(f"| {part}, {side} | {taken.cpu_s:.1f} | {taken.peak / 1e9:.2f} | ", end="")
                print(f"{held:.2f} |", flush=True)
            print(f"| {part}, least | | {least / 1e9:.2f} | 1 |")
            if part == "update" and held > MOST_OVER_LEAST_MEMORY:
                self.missed.append(f"update: {held:.2f} of the least memory")

    def trl(self) -> None:
        """The update beside TRL's."""
        python = os.environ.get("AGENTGYMS_TRL_PYTHON")
        if not python:
            self.missed.append("TRL was not measured: set AGENTGYMS_TRL_PYTHON; see `make bench`")
            return
        rows, policy = self._sequences()
        made = update.beside_trl(rows, policy, self._rounds, python)
        head(f"update from {len(rows)} sequences", "tokens")
        print(f"| TRL's GRPOTrainer | {speed(made['trl'])} | 1 | | |")
        self._row("update", made["update"], made["trl"], LEAST_OVER_TRL)
        apart = max(abs(ours - theirs) for ours, theirs in made["losses"])
        print(f"\nLosses of {len(made['losses'])} steps differ by {apart:.0e} at most.")
        if apart > MOST_LOSS_APART:
            self.missed.append(f"TRL's losses differ by {apart:.1e}: {made['losses']}")

    def _of(self, setting: Setting) -> Sequence[str]:
        return self._warm if setting is DEMO else ()

    def _sequences(self) -> tuple[list[Any], Any]:
        """Return sequences to train on, and the policy that said them."""
        policy = warm_policy(DEMO.config(*self._of(DEMO)))
        return update.distinct_rows(self._recorded(), self._rows), policy

    def _recorded(self) -> list[Call]:
        """Return what was asked and answered in rollouts of the demo."""
        if not self._calls:
            _, self._calls = rollouts_and_bare(DEMO, 0, self._of(DEMO))
        return self._calls

    def _row(
        self, name: str, ours: Sequence[Rate], theirs: Sequence[Rate], least: float | None
    ) -> None:
        """Print our line of a table, and note a bound that is missed."""
        cpu, clock = median_ratio(ours, theirs)
        bound = "" if least is None else f"{least:g}"
        print(f"| {name} | {speed(ours)} | **{cpu:.2f}** | {clock:.2f} | {bound} |", flush=True)
        if least is not None and cpu < least:
            self.missed.append(f"{name}: {cpu:.3f} of the line above, less than {least:g}")


def head(title: str, unit: str) -> None:
    print(f"\n| {title} | {unit} per CPU second | ratio | by the clock | at least |")
    print("|---|--:|--:|--:|--:|")


def speed(rates: Sequence[Rate]) -> str:
    median = statistics.median(rate.per_cpu_s for rate in rates)
    return f"{median:,.0f}" if median >= 100 else f"{median:.1f}"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = ("rollouts", "lock_step", "generators", "update", "prefixes", "long_prompts", "trl")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--quick", action="store_true", help="one round, a shorter warm start")
    options.add_argument("--only", choices=names, help="one of the benchmarks")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    warnings.filterwarnings("ignore", module="transformers")
    benchmarks = Benchmarks(1 if chosen.quick else chosen.rounds, quick=chosen.quick)
    for name in [chosen.only] if chosen.only else names:
        measure: Callable[[], None] = getattr(benchmarks, name)
        measure()
    for line in benchmarks.missed:
        print(f"MISSED: {line}")
    return 1 if benchmarks.missed else 0


if __name__ == "__main__":
    sys.exit(main())
