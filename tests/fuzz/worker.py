"""One process of the fuzzer: runs targets for a time or a number of inputs, and reports on each.

    python tests/fuzz/worker.py TARGETS FOLDER [--seconds S] [--runs N] [--seed K] [--blind]

With atheris installed the target's coverage guides the changes, and inputs that reach something
new are kept in FOLDER/TARGET/corpus. Without it, or with --blind, seeds are changed blindly: the
same number of runs and the same seed give the same inputs. What breaks the target is written to
`broken` beside it, once for each place; `input` has the input that is running, `status.json` the
figures.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import logging
import os
import random
import sys
import time
import traceback
import zlib
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, Final

import fuzz_target
from mutations import mutated

PACKAGES: Final = ("agentgyms", "env_servers", "harness")
_ROOT: Final = Path(__file__).resolve().parents[2]
_OURS: Final = tuple(f"{_ROOT / package}/" for package in PACKAGES)
_OWN: Final = ("worker.py", "fuzz_target.py")
SAMPLES: Final = 40
GUIDED: Final = importlib.util.find_spec("atheris") is not None
_MOST_BYTES: Final = 1 << 14
_OF_MEMORY_MIB: Final = 4096  # libFuzzer's own limit; ours is lower, and an error of Python


class Run:
    """The inputs of one target, and what became of them."""

    def __init__(self, target: fuzz_target.Target, folder: Path, seconds: float, runs: int) -> None:
        self.target, self.folder, self.seconds, self.runs = target, folder, seconds, runs
        self.done = 0
        self.broken: dict[str, str] = {}
        self.memory: list[int] = []
        self._begun = time.monotonic()
        self._sampled = -1.0
        self._input = (folder / "input").open("wb", buffering=0)

    @property
    def over(self) -> bool:
        """Whether there were enough inputs, or it is late."""
        late = self.seconds and time.monotonic() - self._begun >= self.seconds
        return bool(late or (self.runs and self.done >= self.runs))

    def one(self, data: bytes, *, counting: bool, twice: bool) -> None:
        """Run the target on an input; what breaks it is written down."""
        os.pwrite(self._input.fileno(), len(data).to_bytes(4, "big") + data, 0)
        try:
            fuzz_target.check(self.target, data, counting=counting, twice=twice)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            self._write_down(data, error)
        self.done += 1
        self._sample()

    def _write_down(self, data: bytes, error: BaseException) -> None:
        place = _place(error)
        if place in self.broken:
            return
        name = hashlib.sha256(place.encode()).hexdigest()[:12]
        self.broken[place] = f"{type(error).__name__}: {str(error)[:300]}"
        folder = self.folder / "broken"
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(data)
        lines = traceback.format_exception(error, limit=-12)
        text = "".join(lines)[-20_000:]
        (folder / f"{name}.txt").write_text(f"{place}\n{text}", encoding="utf-8", errors="replace")

    def _sample(self) -> None:
        """Take the memory at equal parts of the run, and say how it goes."""
        share = self.done / self.runs if self.runs else 0.0
        if self.seconds:
            share = max(share, (time.monotonic() - self._begun) / self.seconds)
        if share - self._sampled >= 1 / SAMPLES or self.over:
            self._sampled = share
            self.memory.append(fuzz_target.resident_bytes())
            self.report()

    def report(self) -> None:
        """Write the figures so far."""
        corpus = self.folder / "corpus"
        figures = {
            "target": self.target.name,
            "runs": self.done,
            "seconds": time.monotonic() - self._begun,
            "cpu_s": time.process_time(),
            "broken": self.broken,
            "corpus": sum(1 for _ in corpus.iterdir()) if corpus.is_dir() else 0,
            "memory": self.memory,
        }
        partial = self.folder / "status.partial"
        partial.write_text(json.dumps(figures), encoding="utf-8")
        partial.replace(self.folder / "status.json")


def _place(error: BaseException) -> str:
    """Return what stands for an error: its type, and where in our code it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(_OURS)]
    tested = [frame for frame in frames if Path(frame.filename).name not in _OWN]
    endless = isinstance(error, fuzz_target.TooLong | RecursionError)  # where it ends is chance
    frame = (ours or tested or frames)[0 if endless else -1]
    return f"{type(error).__name__} in {Path(frame.filename).name}, {frame.name}"


def blindly(run: Run, seeds: list[bytes], seed: int) -> None:
    """Change seeds blindly, until the run is over."""
    rng = random.Random(f"{seed}/{run.target.name}")
    while not run.over:
        run.one(mutated(rng, seeds, run.target.kind), counting=True, twice=True)


def guided(run: Run, seeds: list[bytes], atheris: Any) -> None:
    """Let coverage guide the changes; ends the process."""
    corpus = run.folder / "corpus"
    corpus.mkdir(exist_ok=True)
    for data in seeds:
        (corpus / hashlib.sha1(data, usedforsecurity=False).hexdigest()).write_bytes(data)

    def test_one(data: bytes) -> None:
        run.one(data, counting=False, twice=zlib.crc32(data) % 8 == 0)
        if run.over:
            run.report()
            os._exit(0)

    def change(data: bytes, most_bytes: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if rng.random() < 0.5:
            return bytes(atheris.Mutate(data, most_bytes))
        return mutated(rng, [data], run.target.kind, most_bytes)

    options = ["-verbosity=0", "-print_final_stats=0", "-timeout=300", "-handle_segv=1"]
    options += [f"-max_len={_MOST_BYTES}", f"-rss_limit_mb={_OF_MEMORY_MIB}", str(corpus)]
    atheris.Setup([sys.argv[0], *options], test_one, custom_mutator=change)
    atheris.Fuzz()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("targets", help="one, or several with commas")
    options.add_argument("folder", type=Path)
    options.add_argument("--seconds", type=float, default=0.0)
    options.add_argument("--runs", type=int, default=0)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--blind", action="store_true")
    chosen = options.parse_args()
    logging.disable()
    atheris: Any = None
    if GUIDED and not chosen.blind:
        import atheris  # type: ignore[no-redef]
    measured: Any = atheris.instrument_imports(include=list(PACKAGES)) if atheris else nullcontext()
    with measured:
        names = chosen.targets.split(",")
        targets = [fuzz_target.load()[name] for name in names]
        seeds = {target.name: _warmed(target) for target in targets}
    fuzz_target.never_sleep()
    fuzz_target.limit_memory()
    for target in targets:
        folder = chosen.folder / target.name
        folder.mkdir(parents=True, exist_ok=True)
        run = Run(target, folder, chosen.seconds, chosen.runs)
        for data in seeds[target.name]:
            run.one(data, counting=False, twice=True)
        run.done = 0
        if atheris:
            guided(run, seeds[target.name], atheris)
        blindly(run, seeds[target.name], chosen.seed)
        run.report()


def _warmed(target: fuzz_target.Target) -> list[bytes]:
    """Return the seeds after running the target on each, which imports what it needs."""
    seeds = target.all_seeds()
    for data in seeds:
        with suppress(Exception):  # it is run once more, and written down
            target.run(data)
    return seeds


if __name__ == "__main__":
    main()
