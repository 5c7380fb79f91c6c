"""The figures of a soak: memory of the servers, a table in Markdown, a picture over time."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from soaking.services import Service

MIB: Final = 1 << 20
MOST_GROWTH: Final = 0.05


@dataclass
class Result:
    """What a soak found.

    Attributes:
        seconds: How long it lasted.
        samples: Seconds and memory in bytes by service, in order.
        faults: By kind.
        errors: Of all services and of the faults, by what was said.
        left: Files, processes and sessions that are left, in words.
    """

    seconds: float = 0.0
    samples: list[tuple[float, dict[str, int]]] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    left: list[str] = field(default_factory=list)

    def memory(self, names: Sequence[str]) -> tuple[float, float]:
        """Return the memory of some services around the first tenth and in the last one, bytes."""
        begin, end = self.samples[0][0], self.samples[-1][0]
        tenth = (end - begin) / 10
        first = [
            self._sum(m, names) for s, m in self.samples if tenth / 2 <= s - begin <= tenth * 2
        ]
        last = [self._sum(m, names) for s, m in self.samples if s >= end - tenth]
        everything = [self._sum(m, names) for _, m in self.samples]
        return statistics.median(first or everything), statistics.median(last or everything)

    def slope(self, names: Sequence[str]) -> float:
        """Return the bytes per hour by which memory grows after the first tenth (least squares)."""
        begin, end = self.samples[0][0], self.samples[-1][0]
        later = [(s, m) for s, m in self.samples if s - begin >= (end - begin) / 10]
        if len(later) < 2:
            return 0.0
        seconds, memory = zip(*((s, self._sum(m, names)) for s, m in later), strict=True)
        return float(np.polyfit(seconds, memory, 1)[0]) * 3600

    @staticmethod
    def _sum(memory: Mapping[str, int], names: Sequence[str]) -> int:
        return sum(memory[name] for name in names)


def markdown(result: Result, services: Sequence[Service], most_growth: float) -> tuple[str, bool]:
    """Return the report, and whether every bound holds."""
    lasting = [service.name for service in services if not service.restarts]
    first, last = result.memory(lasting)
    growth = last / first - 1
    good = not result.errors and not result.left and growth <= most_growth
    return "\n".join(_lines(result, services, growth, most_growth, good)) + "\n", good


def _lines(
    result: Result, services: Sequence[Service], growth: float, most_growth: float, good: bool
) -> Iterator[str]:
    tallies = [service.tally for service in services]
    lasting = [service.name for service in services if not service.restarts]
    yield (
        f"{result.seconds / 60:.0f} minutes, {len(services)} environments: "
        f"{sum(t.episodes for t in tallies):,} episodes, {sum(t.turns for t in tallies):,} turns, "
        f"each equal to the same turn played in this process; {result.faults.total():,} faults, "
        f"{result.errors.total():,} errors."
    )
    yield ""
    yield "| | episodes | turns | cut by a fault | errors | MiB at 10 % | at the end | growth |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|"
    for service in services:
        yield _row(service.name, [service], result)
    yield _row("those that faults do not restart", [s for s in services if not s.restarts], result)
    yield _row("all", services, result)
    yield ""
    yield (
        f"Memory is the sum of the processes' PSS. Of servers that are not restarted it grew by "
        f"{growth:+.1%} (at most {most_growth:.0%}{'' if growth <= most_growth else ', MISSED'}); "
        f"the line fitted after the first tenth rises by "
        f"{result.slope(lasting) / MIB:+.1f} MiB an hour."
    )
    yield ""
    yield from ending(result, good)


def ending(result: Result, good: bool) -> Iterator[str]:
    """Yield the last lines of a report: faults by kind, what is left, and errors."""
    yield "| fault | times |"
    yield "|---|--:|"
    for kind, times in sorted(result.faults.items()):
        yield f"| {kind} | {times:,} |"
    yield ""
    yield f"Left at the end: {'; '.join(result.left) or 'no file, process or session'}."
    for said, times in result.errors.most_common(20):
        yield f"- {times:,} x {' '.join(said.split())}"
    yield "" if good else "\nMISSED"


def _row(name: str, services: Sequence[Service], result: Result) -> str:
    names = [service.name for service in services]
    first, last = result.memory(names)
    tallies: list[Any] = [service.tally for service in services]
    counts = [sum(getattr(t, what) for t in tallies) for what in ("episodes", "turns", "cut")]
    errors = sum(t.errors.total() for t in tallies)
    figures = [f"{count:,}" for count in (*counts, errors)]
    growth = f"{last / first - 1:+.1%}" if first else ""
    return f"| {name} | {' | '.join(figures)} | {first / MIB:.1f} | {last / MIB:.1f} | {growth} |"


def draw(result: Result, services: Sequence[Service], file: Path) -> None:
    """Write a picture of memory over time."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    minutes = [seconds / 60 for seconds, _ in result.samples]
    names = [service.name for service in sorted(services, key=lambda s: s.restarts)]
    shares = [[memory[name] / MIB for _, memory in result.samples] for name in names]
    axes.stackplot(minutes, shares, labels=names, alpha=0.85)
    axes.axvline(minutes[0] + (minutes[-1] - minutes[0]) / 10, color="black", lw=0.8, ls=":")
    axes.set(xlabel="minutes", ylabel="memory, MiB", ylim=0, xlim=(minutes[0], minutes[-1]))
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], labels[::-1], loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(file, dpi=120)
    plt.close(figure)
