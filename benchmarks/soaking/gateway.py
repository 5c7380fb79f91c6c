"""Whether a gateway can be left running: eight agents, faults, and a process that ends and goes on.

In the first half of the time the process is ended every few minutes and goes on with its run; its
last life lasts for the other half, after whose first tenth its memory may grow by 5 %. So may the
memory that a life has when it is as old as the first lives were when they ended. On a slow machine
it takes longer: until each fault has come, and a step has learned from a last life of that age.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from tqdm import tqdm

from env_servers import Server, create_app
from soaking import figures
from soaking.faults import Schedule
from soaking.gateway_agents import Agent, Ledger
from soaking.gateway_faults import Faults
from soaking.gateway_process import GROUP_SIZE, TASKS_PER_STEP, GatewayProcess

AGENTS: Final = 8
_SAMPLES: Final = 900
_GONE_IN_S: Final = 600.0
_MORE_FILES: Final = 8  # connections to the environments that it keeps for later
_COMPARED: Final = ("observation", "state_key", "action", "reward")


Soaked = tuple[figures.Result, Sequence[Any], Callable[[], tuple[str, bool]]]
"""What a soak found, its services, and the function that makes its report."""


class GatewaySoak:
    """A soak of one gateway, its figures and its report."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        self.chosen, self.result, self.ledger = chosen, figures.Result(), Ledger()
        self.lives: dict[int, list[tuple[float, int]]] = {}  # ages and memory
        self.steps, self.learned = 0, Counter[str]()  # rollouts by group

    def run(self) -> None:
        """Play under faults and note what was found."""
        chosen = self.chosen
        with (
            Server(create_app("agentgyms/Corridor-v0", token="", split="train")) as server,
            contextlib.ExitStack() as stack,
        ):
            gateway = GatewayProcess(chosen.folder, server.url, chosen.ttl, chosen.restart * 60)
            self.gateway = gateway
            stack.enter_context(gateway.proxy)
            gateway.begin()
            stack.callback(lambda: gateway.process.kill())
            try:
                self._play(server.url)
                last, whole = gateway.life, 0
                if not gateway.has_ended:  # by itself, which is an error
                    gateway.let_expire()
                    whole = self._await_quiet()
            finally:
                gateway.end()
        self.check(last, whole)
        self.result.errors += self.ledger.errors + gateway.errors + gateway.said()

    def _play(self, environments: str) -> None:
        stop, no_faults = threading.Event(), threading.Event()
        agents = [Agent(self.gateway, self.ledger, number, stop) for number in range(AGENTS)]
        kinds = Faults(agents, environments).kinds()
        schedule = Schedule([self.gateway], self.chosen.every, no_faults, kinds)
        begun = time.monotonic()
        for thread in (schedule, *agents):
            thread.start()
        try:
            self._watch(schedule, no_faults, begun)
        finally:
            no_faults.set()
            schedule.join(1800)
            stop.set()
            for thread in agents:
                thread.join(1800)
        stuck = [thread.name for thread in (schedule, *agents) if thread.is_alive()]
        self.result.left += [f"{name} does not end" for name in stuck]
        self.result.seconds = time.monotonic() - begun
        self.result.faults, self.result.errors = schedule.done, schedule.errors

    def _watch(self, schedule: Schedule, no_faults: threading.Event, begun: float) -> None:
        """Sample memory until the time is over and all that is to happen has happened."""
        seconds = self.chosen.minutes * 60
        with tqdm(total=round(seconds), unit="s", desc="soak", disable=None) as bar:
            while True:
                now = time.monotonic() - begun
                errors = (schedule.errors, self.ledger.errors, self.gateway.errors)
                failed = any(errors) or self.gateway.has_ended
                if now >= seconds and (failed or schedule.has_brought_all):
                    no_faults.set()
                if not schedule.is_alive() and (failed or self._has_gone_on()):
                    return
                self.gateway.restarts = now < seconds / 2 or not schedule.has_brought_all
                self._sample(now)
                bar.set_postfix_str(f"{self.ledger.turns:,} turns")
                bar.update(round(now) - bar.n)
                time.sleep(max(seconds / _SAMPLES, 0.2))

    def _sample(self, now: float) -> None:
        gateway = self.gateway
        life, age, memory = gateway.life, gateway.age_s, gateway.memory()
        self.result.samples.append((now, {gateway.name: memory}))
        if age and life == gateway.life:
            self.lives.setdefault(life, []).append((age, memory))

    def _has_gone_on(self) -> bool:
        """Return whether this life is as old as those before, and a step has learned from it.

        A life learns first from the rollouts that earlier ones have left.
        """
        life = self.gateway.life
        if self.lives.get(life, [(0.0, 0)])[-1][0] < self.gateway.restart_s:
            return False
        own = {group for of, group in list(self.ledger.rewarded.values()) if of == life}
        return any(_groups(step).keys() & own for step in self.gateway.learned())

    def _await_quiet(self) -> int:
        """Wait until all rollouts and connections are gone; return the number of whole groups.

        They are too few for a step, so that they stay.
        """
        gateway, give_up = self.gateway, time.monotonic() + _GONE_IN_S
        most = gateway.files + _MORE_FILES
        while True:
            now, files = gateway.status(), gateway.usage()["files"]
            left = now["open_rollouts"] + now["begun_groups"]
            if not left and now["whole_groups"] < TASKS_PER_STEP and files <= most:
                return now["whole_groups"]
            if time.monotonic() > give_up:
                self.result.left.append(f"{now}, {files} open files, at first {gateway.files}")
                return now["whole_groups"]
            time.sleep(0.5)

    def check(self, last: int, whole: int) -> None:
        """Note steps and rollouts that are missing, doubled or wrong.

        A step must have learned from each whole group of the life `last`; the `whole` newest ones
        may still wait for theirs.
        """
        self._check_steps()
        self._check_rollouts()
        of_life = Counter(group for life, group in self.ledger.rewarded.values() if life == last)
        complete = {group for group, count in of_life.items() if count == GROUP_SIZE}
        unlearned = len(complete - self.learned.keys())
        if unlearned != whole:
            self.result.errors[f"{unlearned} whole groups were not learned, and {whole} wait"] += 1

    def _check_steps(self) -> None:
        steps = self.gateway.steps()
        self.steps = len(steps)
        if steps != list(range(1, len(steps) + 1)) or not steps:
            wrong = [step for index, step in enumerate(steps, 1) if step != index][:3]
            self.result.errors[
                f"metrics.jsonl has {len(steps)} steps, not in order at {wrong}"
            ] += 1

    def _check_rollouts(self) -> None:
        """Compare what was learned with what was reported, rollout by rollout."""
        errors, reported = self.result.errors, self.ledger.reported
        names: Counter[str] = Counter()
        kept = self.gateway.learned()
        if len(kept) != self.steps:
            errors[f"{len(kept)} steps have rollouts, and metrics.jsonl has {self.steps}"] += 1
        for step in kept:
            names.update(one["task_id"] for one in step)
            groups = _groups(step)
            if list(groups.values()) != [GROUP_SIZE] * TASKS_PER_STEP:
                errors[f"a step has groups of {sorted(groups.values())}"] += 1
            for one in step:
                turns = [{name: turn[name] for name in _COMPARED} for turn in one["turns"]]
                if turns != reported.get(one["task_id"]):
                    errors["a rollout was learned with other turns than were reported"] += 1
        if doubled := sum(times > 1 for times in names.values()):
            errors["rollouts were learned twice"] += doubled
        self.learned = Counter(name.partition("-")[0] for name in names)

    # --- the report ------------------------------------------------------------------------------

    def markdown(self, most_growth: float) -> tuple[str, bool]:
        """Return the report, and whether every bound holds."""
        long = max(self.lives)
        last = [(age, {self.gateway.name: memory}) for age, memory in self.lives[long]]
        life = figures.Result(samples=last)
        first, end = life.memory([self.gateway.name])
        aged = self._aged()
        growths = (end / first - 1, aged[-1] / aged[0] - 1)
        good = not self.result.errors and not self.result.left and max(growths) <= most_growth
        words = (
            f"Memory (RSS of the process and its children) of the last life, which lasted "
            f"{last[-1][0] / 60:.0f} minutes, grew from {first / figures.MIB:.1f} to "
            f"{end / figures.MIB:.1f} MiB after its first tenth, {growths[0]:+.1%}; the line "
            f"fitted rises by {life.slope([self.gateway.name]) / figures.MIB:+.1f} MiB an hour. "
            f"{len(self.lives)} lives had, when they were {self.chosen.restart / 2:g} to "
            f"{self.chosen.restart:g} minutes old, first {aged[0] / figures.MIB:.1f} and at last "
            f"{aged[-1] / figures.MIB:.1f} MiB, {growths[1]:+.1%} (at most {most_growth:.0%}"
            f"{'' if max(growths) <= most_growth else ', MISSED'})."
        )
        return "\n".join([*self._counts(), words, "", *figures.ending(self.result, good)]), good

    def _aged(self) -> tuple[float, float]:
        """Return the memory of lives of one age, in the first third of them and in the last."""
        most = self.chosen.restart * 60
        middles = [
            statistics.median(
                [memory for age, memory in life if most / 2 <= age <= most] or [life[-1][1]]
            )
            for life in self.lives.values()
        ]
        third = max(len(middles) // 3, 1)
        return statistics.median(middles[:third]), statistics.median(middles[-third:])

    def _counts(self) -> Iterator[str]:
        ledger, result = self.ledger, self.result
        learned = self.learned.total()
        yield (
            f"{result.seconds / 60:.0f} minutes, a gateway and {AGENTS} agents: "
            f"{len(ledger.rewarded):,} episodes rewarded, {ledger.turns:,} turns, {self.steps:,} "
            f"steps, which learned from {learned:,} episodes, each once and as reported; "
            f"{ledger.cut:,} episodes cut by a fault, {ledger.vanished:,} left without a word; "
            f"{result.faults.total():,} faults, {result.errors.total():,} errors."
        )
        yield ""


def _groups(step: list[dict[str, Any]]) -> Counter[str]:
    """Return how many rollouts of each group a step has learned from."""
    return Counter(one["task_id"].partition("-")[0] for one in step)


def soak(chosen: argparse.Namespace) -> Soaked:
    """Play under faults, and return what was found."""
    if chosen.minutes < chosen.restart:
        raise SystemExit(
            f"--minutes {chosen.minutes:g} is too short to compare lives of one age: expected at "
            f"least --restart, {chosen.restart:g}"
        )
    found = GatewaySoak(chosen)
    found.run()
    return found.result, [found.gateway], lambda: found.markdown(chosen.growth)
