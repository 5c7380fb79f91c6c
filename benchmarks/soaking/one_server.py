"""Whether a server can be left running: thousands of episodes, and what they leave behind.

    python benchmarks/soaking/one_server.py agentgyms/WebShop-v0 [--episodes 10000] [--figure FILE]

A server process is started and played on over HTTP, by experts and at random, to the end of an
episode or to its middle; some sessions are never heard of again, a few at a time. Memory is that
of the server and of a child process on average, of which there are as many as there happen to be
sessions. It may grow by 5 % after the first tenth of the episodes: the median of the last tenth is
held against that of the samples around the first. Then sessions are opened and left, which must be
gone after their time, and that twice: the memory that the first ones leave must do for the second
ones. The exit code is 1 if a bound is missed or anything was answered with an error. Nothing is
broken on purpose here: that is `under_faults.py`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

sys.path.append(str(Path(__file__).resolve().parents[1]))

from process_memory import usage

from soaking.players import Api, Progress, play

MOST_GROWTH: Final = 0.05
MIB: Final = 1 << 20
_SAMPLES: Final = 400
_POLL_S: Final = 0.05
_STARTS_IN_S: Final = 300
_BATCH: Final = 50
_LEFT_AT_A_TIME: Final = 4
_FAREWELL_S: Final = 3.0  # a session is gone a moment before its worker is


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("env_id")
    options.add_argument("--episodes", type=int, default=10_000)
    options.add_argument("--growth", type=float, default=MOST_GROWTH, help="most that is allowed")
    options.add_argument("--minutes", type=float, default=float("inf"), help="begin none after")
    options.add_argument("--abandoned", type=int, default=1_000, help="sessions left in the end")
    options.add_argument("--players", type=int, default=4, help="clients, each with a connection")
    options.add_argument("--seats", type=int, default=16, help="sessions of a client")
    options.add_argument("--ttl", type=float, default=5.0, help="of a session, in seconds")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options.add_argument("--no-oracle", action="store_true", help="play without experts")
    options.add_argument("--figure", type=Path, help="a PNG of memory over episodes")
    options.add_argument("--samples", type=Path, help="all samples, as JSON lines")
    sys.exit(0 if Soak(options.parse_args()).run() else 1)


class Soak:
    """One server, what is played on it, and what that took."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        self.chosen = chosen
        self.progress = Progress(chosen.episodes, abandon_every_s=chosen.ttl / _LEFT_AT_A_TIME)
        self.samples: list[dict[str, float]] = []
        self.good = True

    def run(self) -> bool:
        """Play, print what was found, and return whether every bound holds."""
        chosen = self.chosen
        places = chosen.players * chosen.seats + max(chosen.abandoned, chosen.episodes // 5) + 64
        command = [sys.executable, "-m", "env_servers", chosen.env_id, "--port", "0"]
        command += ["--max-sessions", str(places), "--ttl", str(chosen.ttl)]
        command += [f"--set={setting}" for setting in chosen.set]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip().rpartition(" at ")[2]
            self.api = Api(url, self.progress.errors)
            self._play(server.pid, url)
            self._report()
            if self.chosen.abandoned:
                self._abandon(server.pid)
            ids = [sample["processes"] for sample in self.samples]
            server.terminate()
            self._check("exit status after SIGTERM", server.wait(30), 0)
            print(f"processes at most {max(ids):.0f}")
        finally:
            server.kill()
            server.wait()
        for said, count in self.progress.errors.most_common(10):
            print(f"{count} x {said}")
        self._check("errors", self.progress.errors.total(), 0)
        self._keep()
        return self.good

    def _play(self, pid: int, url: str) -> None:
        kwargs = {} if self.chosen.no_oracle else {"oracle": True}
        players = [
            threading.Thread(
                target=self._player,
                args=(url, self.chosen.seed * 1000 + number, kwargs),
            )
            for number in range(self.chosen.players)
        ]
        begun = time.monotonic()
        self.progress.until = begun + 60 * self.chosen.minutes
        for player in players:
            player.start()
        step = max(1, self.chosen.episodes // _SAMPLES)
        following = 0
        while any(player.is_alive() for player in players):
            done = self.progress.ended.total()
            if done >= following:
                self._sample(pid, begun)
                following = done + step
            time.sleep(_POLL_S)
        self._sample(pid, begun)
        self.seconds = time.monotonic() - begun

    def _player(self, url: str, seed: int, kwargs: dict[str, Any]) -> None:
        try:
            play(Api(url, self.progress.errors), self.progress, self.chosen.seats, seed, kwargs)
        except Exception as e:
            self.progress.errors[f"{type(e).__name__}: {e}"] += 1

    def _sample(self, pid: int, begun: float) -> None:
        taken = usage(pid)
        done = self.progress.ended.total()
        child = taken["children"] / max(taken["processes"] - 1, 1)
        seconds = time.monotonic() - begun
        self.samples.append({"episodes": done, "seconds": seconds, "child": child, **taken})

    def _report(self) -> None:
        done, progress = self.progress.ended.total(), self.progress
        fates = ", ".join(f"{count:,} {fate}" for fate, count in progress.ended.most_common())
        rate = progress.turns / self.seconds
        print(f"{self.chosen.env_id} {' '.join(self.chosen.set)}: {done:,} episodes ({fates}),")
        print(f"{progress.turns:,} turns in {self.seconds:.0f} s, {rate:,.0f} turns/s")
        self._check("episodes", done, self.progress.begun)
        print(f"{'':24}{'first tenth':>14}{'last tenth':>14}{'peak':>14}")
        for name in ("resident", "children", "threads", "files"):
            unit = MIB if name in ("resident", "children") else 1
            first, last = self._tenths(name)
            peak = max(sample[name] for sample in self.samples)
            print(f"{name:24}{first / unit:14,.1f}{last / unit:14,.1f}{peak / unit:14,.1f}")
        for what, names in {"the server": "resident", "a child process": "child"}.items():
            first, last = self._tenths(names)
            growth = last / first - 1 if first else 0.0
            self._at_most(f"growth of {what}", growth, self.chosen.growth)

    def _tenths(self, name: str) -> tuple[float, float]:
        """Return the medians of a figure around the first tenth, and in the last."""
        wanted = self.progress.begun

        def median(low: float, high: float) -> float:
            found = [
                sample[name]
                for sample in self.samples
                if low * wanted <= sample["episodes"] <= high * wanted
            ]
            return statistics.median(found) if found else float("nan")

        return median(0.07, 0.13), median(0.9, 1.0)

    def _abandon(self, pid: int) -> None:
        """Open sessions, leave them, and wait until they are gone; then once more."""
        self._await_sessions(0)
        before = usage(pid)
        taken = [self._abandon_once(pid) for _ in range(2)]
        (peak, first), (_, second) = taken
        shown = [_memory(x) / MIB for x in (before, peak, first, second)]
        print(
            "memory {:,.1f} MiB, with abandoned sessions {:,.1f}, after {:,.1f}".format(*shown[:3])
        )
        self._check("sessions left", self._sessions(), 0)
        growth = _memory(second) / _memory(first) - 1
        self._at_most("growth by others as many", growth, self.chosen.growth)
        self._at_most("files kept", second["files"] - before["files"], 4)

    def _abandon_once(self, pid: int) -> tuple[dict[str, int], dict[str, int]]:
        """Return what is taken while there are abandoned sessions, and when they are gone."""
        left = self.chosen.abandoned
        for first in range(0, left, _BATCH):
            number = min(_BATCH, left - first)
            opened = self.api.batch("create", [{}] * number)
            ids = [answer["session_id"] for answer in opened if "session_id" in answer]
            self.api.batch("reset", [{"session_id": id_, "seed": 1} for id_ in ids])
        with_them = usage(pid)
        print(f"{left:,} abandoned sessions, gone in {self._await_sessions(0):.1f} s")
        return with_them, usage(pid)

    def _await_sessions(self, number: int) -> float:
        begun = time.monotonic()
        while self._sessions() > number and time.monotonic() - begun < 3 * self.chosen.ttl + 60:
            time.sleep(_POLL_S)
        seconds = time.monotonic() - begun
        time.sleep(_FAREWELL_S)
        return seconds

    def _sessions(self) -> float:
        lines = self.api.metrics().splitlines()
        return float(next(x for x in lines if x.startswith("agentgyms_sessions ")).split()[1])

    def _check(self, what: str, found: float, expected: float) -> None:
        self._say(what, f"{found:,}", f"expected {expected:,}", found == expected)

    def _at_most(self, what: str, found: float, bound: float) -> None:
        style = ",.1%" if bound < 1 else ","
        self._say(what, format(found, style), f"at most {format(bound, style)}", found <= bound)

    def _say(self, what: str, found: str, bound: str, good: bool) -> None:
        self.good = self.good and good
        print(f"{what:24}{found:>14}   {bound}{'' if good else '   MISSED'}", flush=True)

    def _keep(self) -> None:
        if self.chosen.samples:
            lines = [json.dumps(sample) for sample in self.samples]
            self.chosen.samples.write_text("".join(f"{line}\n" for line in lines))
        if self.chosen.figure:
            draw(self.chosen.env_id, self.samples, self.chosen.figure)


def _memory(taken: dict[str, int]) -> int:
    return taken["resident"] + taken["children"]


def draw(env_id: str, samples: list[dict[str, float]], file: Path) -> None:
    """Write a picture of memory over episodes."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
    episodes = [sample["episodes"] for sample in samples]
    server = [sample["resident"] / MIB for sample in samples]
    children = [sample["children"] / MIB for sample in samples]
    axes.stackplot(episodes, server, children, labels=("server", "child processes"), alpha=0.8)
    axes.axvline(episodes[-1] / 10, color="black", linewidth=0.8, linestyle=":")
    axes.set(title=env_id, xlabel="episodes", ylabel="resident memory, MiB", ylim=0)
    axes.set_xlim(0, episodes[-1])
    axes.legend(loc="lower right")
    figure.savefig(file, dpi=120)


if __name__ == "__main__":
    main()
