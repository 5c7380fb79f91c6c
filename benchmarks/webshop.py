"""Time and memory of WebShop with as many products as the official catalogue has.

    python benchmarks/webshop.py [--products 1181436] [--keep FOLDER]

Official files are made up and built by the command that users run. Then processes of their own open
the catalogue and shop in it at random, through the whole interface; so do processes with 1,000
products and with the generated catalogue. Each figure stands beside its bound; one that misses it
makes the exit code 1. Times of shopping and searching are CPU times of those processes, imports
apart, with the files in the system's cache: what else runs on a machine only adds to them. What
the clock on the wall says is printed too, without a bound, and so is opening with imports.

What reads the file at once, and bm25s, are measured in the same run on 1,000 products. `--keep`
names a folder whose catalogues are used if they are there, and kept.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import webshop_files
from process_memory import memory, watch

from agentgyms.envs.webshop.catalogue.catalogue import Catalogue
from agentgyms.envs.webshop.search.text_index import document_text

ENV_ID = "agentgyms/WebShop-v0"
NUM_PRODUCTS, FEW, NUM_PROCESSES, NUM_EPISODES = 1_181_436, 1_000, 16, 60
COMMAND = "from agentgyms.cli.main import run; run()"
GIB, MIB = 1 << 30, 1 << 20


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--products", type=int, default=NUM_PRODUCTS)
    options.add_argument("--processes", type=int, default=NUM_PROCESSES)
    options.add_argument("--keep", type=Path, help="folder of catalogues, used again if there")
    options.add_argument("--play", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.play:
        play(json.loads(chosen.play))
        return
    report = Report()
    with tempfile.TemporaryDirectory(prefix="webshop-") as scratch:
        root = chosen.keep or Path(scratch)
        few = built(root, FEW, report)
        many = built(root, chosen.products, report)
        report.title(f"{chosen.products:,} products")
        measure_many(many, chosen.processes, report)
        report.title(f"{FEW:,} products")
        (found,) = players([{"source": "official", "data_path": str(few)}])
        report.steps(found, 1.0, 2.0)
        measure_references(root / f"files-{FEW}", few, report)
        report.title("the generated catalogue, 2,400 products")
        (found,) = players([{}])
        report.steps(found, 1.0, 2.0, open_s=None)
    sys.exit(report.failed)


class Report:
    """Prints figures as they come, each beside its bound."""

    def __init__(self) -> None:
        self.failed = False

    def title(self, text: str) -> None:
        """Print a heading."""
        print(f"\n{text}", flush=True)

    def figure(self, what: str, value: float, unit: str, bound: float | None = None) -> None:
        """Print a figure, and whether it keeps its bound."""
        row = f"  {what:52}{value:>10.2f} {unit:3}"
        if bound is not None:
            missed = value > bound
            self.failed |= missed
            row += f"  at most {bound:g} {unit}: {'FAIL' if missed else 'pass'}"
        print(row, flush=True)

    def steps(
        self, found: dict[str, Any], plain: float, search: float, open_s: float | None = 1.0
    ) -> None:
        """Print the times of steps in ms, of which the medians have bounds."""
        self.figure("open, reset", found["open_s"], "s", open_s)
        self.figure("  by the clock on the wall", found["open_wall_s"], "s")
        self.figure("  with the start of Python and imports", found["start_wall_s"], "s")
        for what, kind, bound in (
            ("search step", "search", search),
            ("any other step", "other", plain),
        ):
            times = found[kind]
            times_ms = sorted(1e3 * seconds for seconds in times)
            wall_ms = 1e3 * statistics.median(found[f"{kind}_wall"])
            self.figure(f"{what}, median of {len(times)}", statistics.median(times_ms), "ms", bound)
            self.figure("  by the clock on the wall", wall_ms, "ms")
            self.figure(f"{what}, 95 %", times_ms[int(0.95 * len(times_ms))], "ms")
            self.figure(f"{what}, longest", times_ms[-1], "ms")


# --- building -----------------------------------------------------------------------------------


def built(root: Path, num_products: int, report: Report) -> Path:
    """Return the folder of a catalogue, made and built by the command line if it is not there."""
    home = root / f"home-{num_products}"
    target = home / "webshop"
    report.title(f"build of {num_products:,} products")
    if target.exists():
        print(f"  {target} is there")
        return target
    files = root / f"files-{num_products}"
    if not files.exists():
        before = time.perf_counter()
        webshop_files.write(root / "unfinished", num_products)
        (root / "unfinished").rename(files)
        report.figure("official files made up", time.perf_counter() - before, "s")
    report.figure("their size", size(files) / GIB, "GiB")
    before = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, "-c", COMMAND, "data", "import", "webshop", files],
        env=os.environ | {"AGENTGYMS_DATA": str(home)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    peak, own = watch(child)
    if child.returncode:
        sys.exit("the import failed")
    report.figure("build", time.perf_counter() - before, "s")
    report.figure("peak memory, mapped files included", peak / GIB, "GiB", 4.0)
    report.figure("peak memory of its own", own / GIB, "GiB", 4.0)
    report.figure("size on disk", size(target) / GIB, "GiB")
    return target


def size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


# --- shopping -----------------------------------------------------------------------------------


def measure_many(catalogue: Path, num_processes: int, report: Report) -> None:
    kwargs = {"source": "official", "data_path": str(catalogue)}
    (found,) = players([kwargs])
    report.steps(found, 1.0, 8.0)
    report.figure("private memory before opening", found["private_before"] / MIB, "MiB")
    report.figure("private memory after the episodes", found["private"] / MIB, "MiB", 150.0)
    report.figure(
        "  as the system counts, read pages of files too", found["all_private"] / MIB, "MiB"
    )
    report.figure("pages of the catalogue that were read", found["mapped"] / MIB, "MiB")
    together = players([kwargs] * num_processes, num_episodes=5)
    report.title(f"  {num_processes} processes at once")
    kinds = ("private", "all_private", "mapped", "mapped_share")
    most = {kind: max(one[kind] for one in together) / MIB for kind in kinds}
    total = {kind: sum(one[kind] for one in together) / MIB for kind in kinds}
    on_disk = size(catalogue) / MIB
    for what, value, bound in (
        ("private memory, the most of one", most["private"], 150.0),
        ("  as the system counts, the most of one", most["all_private"], None),
        ("private memory of all", total["private"], None),
        ("pages of the catalogue, those of all added up", total["mapped"], None),
        ("pages of the catalogue, shared ones counted once", total["mapped_share"], on_disk),
    ):
        report.figure(what, value, "MiB", bound)


def players(all_kwargs: list[dict[str, Any]], num_episodes: int = NUM_EPISODES) -> list[Any]:
    """Return what `play` finds in processes that run at once and are all alive when it measures."""
    asked = {"num_episodes": num_episodes}
    children = [
        subprocess.Popen(
            [
                *(sys.executable, __file__, "--play"),
                json.dumps(asked | {"kwargs": kwargs, "seed": seed, "started": time.time()}),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed, kwargs in enumerate(all_kwargs)
    ]
    for child in children:
        assert child.stdout is not None
        if child.stdout.readline() != "ready\n":
            sys.exit("a process that shops failed")
    # All are told to measure before any is waited for, and none ends before all have measured.
    replies: dict[int, str] = {}

    def ask(number: int, child: subprocess.Popen[str]) -> None:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write("measure\n")
        child.stdin.flush()
        replies[number] = child.stdout.readline()

    threads = [threading.Thread(target=ask, args=pair) for pair in enumerate(children)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for child in children:
        child.communicate("end\n")
    return [json.loads(replies[number]) for number in range(len(children))]


def play(asked: dict[str, Any]) -> None:
    """Shop at random, and tell times and memory."""
    folder = asked["kwargs"].get("data_path")
    importlib.import_module("agentgyms.envs.webshop.env")
    before = memory(folder)
    start, opening = time.process_time(), time.perf_counter()
    env: Any = gym.make(ENV_ID, **asked["kwargs"]).unwrapped
    _, info = env.reset(seed=asked["seed"])
    found: dict[str, Any] = {kind: [] for kind in ("search", "search_wall", "other", "other_wall")}
    found["open_s"] = time.process_time() - start
    found["open_wall_s"] = time.perf_counter() - opening
    found["start_wall_s"] = time.time() - asked["started"]
    rng = random.Random(asked["seed"])
    for number in range(asked["num_episodes"]):
        shop(env, info, rng, found)
        _, info = env.reset(seed=1000 * asked["seed"] + number)
    found["private_before"] = before["private"]
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps(found | memory(folder)), flush=True)
    sys.stdin.readline()


def shop(env: Any, info: dict[str, Any], rng: random.Random, found: dict[str, Any]) -> None:
    """Play one episode: searches for words of the instruction, clicks, at last a purchase."""
    over = False
    while not over:
        action = choose(info, rng)
        start, wall = time.process_time(), time.perf_counter()
        _, _, terminated, truncated, info = env.step(action)
        kind = "search" if action.startswith("search") else "other"
        found[kind].append(time.process_time() - start)
        found[f"{kind}_wall"].append(time.perf_counter() - wall)
        over = terminated or truncated


def choose(info: dict[str, Any], rng: random.Random) -> str:
    clicks = [action for action in info["admissible_actions"] if action.startswith("click[")]
    if not clicks or rng.random() < 0.15:
        wanted = re.sub(r", and price lower than .*|[^\w\s]", " ", info["goal"].lower()).split()[2:]
        first = rng.randrange(max(1, len(wanted) - 4))
        return f"search[{' '.join(wanted[first : first + rng.randint(3, 10)])}]"
    items = [action for action in clicks if re.fullmatch(r"click\[b\w{9}\]", action)]
    action: str = rng.choice(items if items and rng.random() < 0.7 else clicks)
    return action


# --- references ---------------------------------------------------------------------------------


def measure_references(files: Path, catalogue: Path, report: Report) -> None:
    """Print what reading the file at once takes, and bm25s beside the own search."""
    import bm25s  # here, so that it is no part of the memory of those that shop

    if files.exists():
        file = files / "items_shuffle.json"
        took = milliseconds(lambda: json.loads(file.read_bytes()))
        report.figure("reference: json.loads of the file", took, "ms")
    report.figure("opening the catalogue", milliseconds(Catalogue.open, catalogue), "ms")
    own = Catalogue.open(catalogue)
    products = list(own)
    retriever = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
    documents = [document_text(product) for product in products]
    retriever.index(bm25s.tokenize(documents, show_progress=False), show_progress=False)
    queries = [product.instruction for product in products if product.instruction][:200]

    def theirs(query: str) -> None:
        tokens = bm25s.tokenize(query, show_progress=False, return_ids=False)
        retriever.retrieve(tokens, k=50, show_progress=False)

    for what, search in (("own search alone", own.search), ("reference: bm25s", theirs)):
        times = [milliseconds(search, query) for query in queries]
        report.figure(f"{what}, median", statistics.median(times), "ms")


def milliseconds(call: Any, *arguments: Any) -> float:
    before = time.process_time()
    call(*arguments)
    return 1e3 * (time.process_time() - before)


if __name__ == "__main__":
    main()
