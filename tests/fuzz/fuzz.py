"""Fuzz everything that reads what others wrote: `make fuzz MINUTES=30`.

    python tests/fuzz/fuzz.py [--minutes M | --runs N] [--targets A,B] [--folder F] [--blind]
    python tests/fuzz/fuzz.py --again TARGET FILE

Targets take turns, each in a process of its own with a bound on its memory: a minute at most, again
and again, until the minutes are over. A report in Markdown goes to FOLDER/report.md: inputs, how
many places broke, inputs kept, and the memory of the processes after a tenth of their time and at
the end. The exit code is 1 if anything broke. What broke it is in FOLDER/TARGET/broken: put the
file into `tests/fuzz/seeds/TARGET` once it is mended, and every later run begins with it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import fuzz_target
from tqdm import tqdm

HERE: Final = Path(__file__).parent
MIB: Final = 1 << 20
MOST_GROWTH: Final = 0.05
_SLICE_S: Final = 60.0
_SILENT_S: Final = 120.0
"""Seconds without a finished input after which a process hangs, whatever the machine's speed."""
_STARTS_IN_S: Final = 300.0


@dataclass(slots=True)
class Figures:
    """What came of one target.

    Attributes:
        runs: Inputs.
        seconds: Time spent on them.
        corpus: Inputs that are kept because they reach something.
        broken: Errors by the place that they come from.
        early: Memory after a tenth of the last process's time, in bytes.
        late: Memory at its end.
    """

    runs: int = 0
    seconds: float = 0.0
    corpus: int = 0
    broken: dict[str, str] = field(default_factory=dict)
    early: int = 0
    late: int = 0

    def add(self, status: dict[str, Any]) -> None:
        """Add what a process reported."""
        self.runs += status["runs"]
        self.seconds += status["seconds"]
        self.corpus = status["corpus"]
        self.broken |= status["broken"]
        memory = status["memory"]
        if memory:
            self.early, self.late = memory[len(memory) // 10], memory[-1]


def slices(minutes: float, number: int) -> list[float]:
    """Return the seconds of each round: equal, and a minute for each target at most."""
    seconds = 60 * minutes / number
    rounds = max(1, round(seconds / _SLICE_S))
    return [seconds / rounds] * rounds


def fuzz(names: Sequence[str], folder: Path, options: argparse.Namespace) -> dict[str, Figures]:
    """Run targets in turns, and return what came of each."""
    found = {name: Figures() for name in names}
    rounds = [0.0] if options.runs else slices(options.minutes, len(names))
    todo = [(number, name, seconds) for number, seconds in enumerate(rounds) for name in names]
    bar = tqdm(todo, unit="turn", desc="fuzzing", disable=None)
    for number, name, seconds in bar:
        bar.set_postfix_str(f"{name}, {sum(len(f.broken) for f in found.values())} broken")
        _turn(found[name], name, folder, seconds, options, number)
    return found


def _turn(
    figures: Figures,
    name: str,
    folder: Path,
    seconds: float,
    options: argparse.Namespace,
    number: int,
) -> None:
    """Run one process of a target, and add what it reports or how it ended."""
    own = folder / name
    status = own / "status.json"
    status.unlink(missing_ok=True)
    command = [sys.executable, str(HERE / "worker.py"), name, str(folder)]
    command += ["--seconds", str(seconds), "--runs", str(options.runs)]
    command += ["--seed", str(options.seed + number)] + ["--blind"] * options.blind
    own.mkdir(parents=True, exist_ok=True)
    with (own / "log.txt").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            end = _wait(process, status)
        finally:
            process.kill()
            process.wait()
    if status.is_file():
        figures.add(json.loads(status.read_text(encoding="utf-8")))
    if end:
        figures.broken[end] = _last_lines(own / "log.txt")
        _keep_input(own)


def _wait(process: subprocess.Popen[bytes], status: Path) -> str:
    """Wait for a process; return "" if it ended well, else what happened."""
    heard = time.monotonic() + _STARTS_IN_S
    before = 0
    while process.poll() is None:
        time.sleep(0.05)
        changed = status.stat().st_mtime_ns if status.is_file() else 0
        if changed != before:
            before, heard = changed, time.monotonic()
        if time.monotonic() - heard > _SILENT_S:
            return f"no input ended within {_SILENT_S:g} s"
    return "" if process.returncode == 0 else f"the process ended with {process.returncode}"


def _last_lines(log: Path) -> str:
    return " | ".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-4:])[:600]


def _keep_input(own: Path) -> None:
    """Keep the input that was running when a process ended."""
    content = (own / "input").read_bytes() if (own / "input").is_file() else b""
    if len(content) >= 4:
        (own / "broken").mkdir(exist_ok=True)
        length = int.from_bytes(content[:4], "big")
        (own / "broken" / "ended").write_bytes(content[4 : 4 + length])


def report(found: dict[str, Figures], *, blind: bool) -> str:
    """Return the figures as Markdown."""
    return "\n".join(_lines(found, blind)) + "\n"


def _lines(found: dict[str, Figures], blind: bool) -> Iterator[str]:
    total = Figures(
        sum(figures.runs for figures in found.values()),
        sum(figures.seconds for figures in found.values()),
        sum(figures.corpus for figures in found.values()),
        {f"{name}: {place}": what for name, f in found.items() for place, what in f.broken.items()},
        sum(figures.early for figures in found.values()),
        sum(figures.late for figures in found.values()),
    )
    how = "changed blindly" if blind else "guided by coverage"
    yield f"{total.runs:,} inputs, {how}, of {len(found)} targets in {total.seconds / 60:.1f} min: "
    yield f"{len(total.broken)} places broke; memory grew by {_growth(total)} after the first tenth"
    yield ""
    yield "| target | inputs | each s | broken | corpus | MiB at 10 % | at the end | growth |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|"
    for name, figures in [*found.items(), ("all", total)]:
        rate = figures.runs / max(figures.seconds, 1e-9)
        yield (
            f"| {name} | {figures.runs:,} | {rate:,.0f} | {len(figures.broken)} "
            f"| {figures.corpus:,} | {figures.early / MIB:.1f} | {figures.late / MIB:.1f} "
            f"| {_growth(figures)} |"
        )
    if total.broken:
        yield ""
    for place, what in total.broken.items():
        yield f"- {place}: {' '.join(what.split())}"


def _growth(figures: Figures) -> str:
    return f"{figures.late / figures.early - 1:+.1%}" if figures.early else "unknown"


def again(name: str, file: Path) -> None:
    """Run one input of a target, and let what it raises through."""
    fuzz_target.never_sleep()
    fuzz_target.check(fuzz_target.load()[name], file.read_bytes())


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--minutes", type=float, default=1.0)
    options.add_argument("--runs", type=int, default=0, help="inputs of each target, not minutes")
    options.add_argument("--targets", default="", help="names with commas; all without")
    options.add_argument("--folder", type=Path, default=Path(".fuzz"))
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--blind", action="store_true", help="not even where atheris is installed")
    options.add_argument("--again", nargs=2, metavar=("TARGET", "FILE"), help="run one input")
    chosen = options.parse_args()
    if chosen.again:
        again(chosen.again[0], Path(chosen.again[1]))
        return
    known = fuzz_target.load()
    names = chosen.targets.split(",") if chosen.targets else list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        options.error(f"there is no target {unknown[0]}: expected some of {', '.join(known)}")
    blind = chosen.blind or not _has_atheris()
    found = fuzz(names, chosen.folder, chosen)
    text = report(found, blind=blind)
    (chosen.folder / "report.md").write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    sys.exit(any(figures.broken for figures in found.values()))


def _has_atheris() -> bool:
    from importlib.util import find_spec

    return find_spec("atheris") is not None


if __name__ == "__main__":
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    main()
