"""Whether servers can be left running while things go wrong: eight environments, hours of faults.

    python benchmarks/soaking/under_faults.py [--minutes 120] [--environments Corridor,Sokoban]

Each environment has a server process behind a proxy, and four clients that play each turn in this
process too: both must give the same. Every few seconds there is a fault: workers are killed,
connections break, trickle or are never read, clients vanish, servers are stopped, drained or
killed and started again, whose sessions the clients build anew. The figures go to FOLDER:
`report.md`, `memory.png` and `samples.jsonl`. The exit code is 1 if there was an error, if a file,
a process or a session is left, or if memory grew by more than 5 % after the first tenth. With
`--gateway` a gateway of a policy in training is soaked in their place, see `gateway.py`. Without
faults, and for the memory of one environment by itself, there is `one_server.py`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "benchmarks"))
sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "env_servers")]  # its proxy is that of tests

from tqdm import tqdm  # noqa: E402

from soaking import figures, gateway  # noqa: E402
from soaking.clients import Client  # noqa: E402
from soaking.faults import Schedule  # noqa: E402
from soaking.services import MARK, Service  # noqa: E402

ENVIRONMENTS: Final[dict[str, dict[str, Any]]] = {
    "ALFWorld": {},
    "WebShop": {},
    "AppWorld": {"oracle": True},
    "SOTOPIA": {"oracle": True},
    "Corridor": {},
    "Sokoban": {"boxes": 1},
    "VisualSokoban": {"boxes": 1},
    "SearchQA": {},
}
"""Names and arguments; faults restart the servers of the last four."""

RESTARTED: Final = ("Corridor", "Sokoban", "VisualSokoban", "SearchQA")
_SAMPLES: Final = 400
_GONE_IN_S: Final = 120.0


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--minutes", type=float, default=120.0)
    options.add_argument("--environments", default=",".join(ENVIRONMENTS), help="with commas")
    options.add_argument("--clients", type=int, default=4, help="of each environment")
    options.add_argument("--every", type=float, help="seconds between faults: 15, a gateway's 4")
    options.add_argument("--pause", type=float, default=0.02, help="seconds between turns")
    options.add_argument("--ttl", type=float, default=60.0, help="of an unused session, in seconds")
    options.add_argument("--gateway", action="store_true", help="soak one, no environments")
    options.add_argument("--restart", type=float, default=3.0, help="minutes it lives at least")
    options.add_argument("--growth", type=float, default=figures.MOST_GROWTH, help="most allowed")
    options.add_argument("--folder", type=Path, default=Path("soak"))
    chosen = options.parse_args()
    chosen.every = chosen.every or (4.0 if chosen.gateway else 15.0)
    chosen.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="soak-") as temporary:
        os.environ |= {"TMPDIR": temporary, MARK: str(os.getpid())}
        result, services, report = (gateway.soak if chosen.gateway else soak)(chosen)
        result.left += _left(Path(temporary))
    text, good = report()
    (chosen.folder / "report.md").write_text(text, encoding="utf-8")
    figures.draw(result, services, chosen.folder / "memory.png")
    lines = [json.dumps({"seconds": s, "memory": memory}) for s, memory in result.samples]
    (chosen.folder / "samples.jsonl").write_text("".join(f"{line}\n" for line in lines))
    print(text)
    sys.exit(0 if good else 1)


def soak(chosen: argparse.Namespace) -> gateway.Soaked:
    """Play under faults, and return what was found."""
    services = [
        Service(name, ENVIRONMENTS[name], chosen.folder, chosen.ttl, restarts=name in RESTARTED)
        for name in chosen.environments.split(",")
    ]
    result = figures.Result()
    with contextlib.ExitStack() as stack:
        for service in services:
            service.log.unlink(missing_ok=True)
            service.begin()
            stack.callback(service.end)
        for service in services:
            service.await_ready()
            stack.enter_context(service.proxy)
        _play(services, chosen, result)
        result.left += _sessions_left(services, chosen.ttl)
    for service in services:
        if unexpected := service.unexpected():
            service.tally.errors[f"unexpected errors in {service.log}"] += unexpected
        for said, times in service.tally.errors.items():
            result.errors[f"{service.name}: {said}"] += times
    return result, services, lambda: figures.markdown(result, services, chosen.growth)


def _play(services: Sequence[Service], chosen: argparse.Namespace, result: figures.Result) -> None:
    stop = threading.Event()
    schedule = Schedule(services, chosen.every, stop)
    clients = [
        Client(service, number, stop, chosen.pause)
        for service in services
        for number in range(chosen.clients)
    ]
    begun = time.monotonic()
    for thread in (schedule, *clients):
        thread.start()
    try:
        _watch(services, chosen.minutes * 60, begun, result)
    finally:
        stop.set()
        for thread in (schedule, *clients):
            thread.join(600)
    stuck = [thread.name for thread in clients if thread.is_alive()]
    result.left += [f"the client {name} does not end" for name in stuck]
    result.seconds = time.monotonic() - begun
    result.faults = schedule.done
    result.errors += schedule.errors


def _watch(
    services: Sequence[Service], seconds: float, begun: float, result: figures.Result
) -> None:
    """Sample memory until the time is over."""
    with tqdm(total=round(seconds), unit="s", desc="soak", disable=None) as bar:
        while (now := time.monotonic() - begun) < seconds:
            result.samples.append((now, {service.name: service.memory() for service in services}))
            tallies = [service.tally for service in services]
            errors = sum(tally.errors.total() for tally in tallies)
            bar.set_postfix_str(f"{sum(t.turns for t in tallies):,} turns, {errors} errors")
            bar.update(round(now) - bar.n)
            time.sleep(max(seconds / _SAMPLES, 0.5))
        bar.update(round(seconds) - bar.n)


def _sessions_left(services: Sequence[Service], ttl_s: float) -> list[str]:
    """Return the services that still hold sessions when all of them should have expired."""
    for service in services:
        service.await_ready()  # a fault may just have started it again
    give_up = time.monotonic() + ttl_s + _GONE_IN_S
    left = list(services)
    while left and time.monotonic() < give_up:
        left = [service for service in left if service.sessions()]
        time.sleep(0.5)
    return [f"{service.sessions()} sessions of {service.name}" for service in left]


def _left(temporary: Path) -> list[str]:
    """Return the files and processes that are left once all servers have ended."""
    give_up = time.monotonic() + _GONE_IN_S
    while (found := _processes()) and time.monotonic() < give_up:
        time.sleep(0.5)
    files = [str(path.relative_to(temporary)) for path in temporary.rglob("*") if path.is_file()]
    return [f"process {pid}: {words}" for pid, words in found] + [f"file {name}" for name in files]


def _processes() -> list[tuple[int, str]]:
    """Return the processes that this soak has started, by their environment."""
    mark = f"{MARK}={os.getpid()}".encode()
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int(place.name) != os.getpid() and mark in (place / "environ").read_bytes():
                words = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                found.append((int(place.name), words[:200]))
    return found


if __name__ == "__main__":
    main()
