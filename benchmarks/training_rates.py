"""What is measured of training: policies and how they are asked, calls, and rates."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import config as configs
from harness.config import Config
from harness.inference.completers import Completer, Sampling
from harness.model.policy import Policy
from harness.preflight.defaults import resolve
from harness.training.setup import start
from harness.types.messages import Message
from harness.types.rollout import Completion

CONCURRENT = 64
SEED = 5


@dataclass(frozen=True, slots=True)
class Setting:
    """A policy, and how it is asked.

    Attributes:
        label: In words.
        overrides: Of the recipe `alfworld-tiny`.
        episodes: Played in each round.
    """

    label: str
    overrides: tuple[str, ...] = ()
    episodes: int = 160

    def config(self, *more: str) -> Config:
        """Return the run's configuration."""
        return resolve(configs.load("alfworld-tiny", [*self.overrides, *more]))


DEMO = Setting("demo's prompts")
THINK = Setting(
    "default prompts",
    (
        *('agent.style="think"', "agent.window=2", "agent.max_tokens=64"),
        *("warmstart.episodes=60", "warmstart.steps=100", "warmstart.batch_size=16"),
    ),
    episodes=96,
)
QUICK = ("warmstart.episodes=200", "warmstart.steps=120")
"""Of the demo's warm start, which takes two minutes otherwise."""


@dataclass(frozen=True, slots=True)
class Call:
    """One response, as it was asked for."""

    messages: Sequence[Message]
    sampling: Sampling
    seed: int
    completion: Completion


@dataclass(frozen=True, slots=True)
class Rate:
    """Something counted, and how long it took.

    Attributes:
        count: Tokens, or episodes.
        cpu_s: CPU seconds of this process.
        wall_s: Seconds on the clock.
    """

    count: float
    cpu_s: float
    wall_s: float

    @property
    def per_cpu_s(self) -> float:
        """What one CPU second brings."""
        return self.count / self.cpu_s

    @property
    def per_s(self) -> float:
        """What one second brings."""
        return self.count / self.wall_s


class Clock:
    """CPU time, and time.

    Args:
        cpu: Tells the CPU seconds of this process, or of a thread.
    """

    def __init__(self, cpu: Callable[[], float] = time.process_time) -> None:
        """Begin."""
        self._tell = cpu
        self._cpu, self._wall = cpu(), time.perf_counter()

    def rate(self, count: float) -> Rate:
        """Return the rate of what was counted since the beginning."""
        return Rate(count, self._tell() - self._cpu, time.perf_counter() - self._wall)


def median_ratio(ours: Sequence[Rate], theirs: Sequence[Rate]) -> tuple[float, float]:
    """Return the median over rounds of our rate by theirs, in CPU time and by the clock."""
    pairs = list(zip(ours, theirs, strict=True))
    cpu = statistics.median(a.per_cpu_s / b.per_cpu_s for a, b in pairs)
    return cpu, statistics.median(a.per_s / b.per_s for a, b in pairs)


def warm_policy(config: Config) -> Policy:
    """Return the policy after the recipe's warm start; it is made once and kept."""
    made_of = (config.run.seed, config.env, config.policy, config.agent, config.warmstart)
    name = configs.digest_values({"made_of": repr(made_of)})
    folder = Path(tempfile.gettempdir()) / "agentgyms-benchmarks" / f"policy-{name}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as making:
            trainer = start(configs.replace(config, run=configs.replace(config.run, output=making)))
            trainer.policy.save(Path(making) / "policy")
            trainer.close()
            (Path(making) / "policy").rename(folder)
    return Policy.load(str(folder), "cpu")


def afresh(policy: Policy) -> Policy:
    """Return the policy with a reader that remembers no prompt."""
    return Policy(policy.model, policy.tokenizer, "cpu")


class Recorder:
    """Passes requests on and keeps the calls in the order in which they ended."""

    def __init__(self, completer: Completer) -> None:
        """Keep nothing yet."""
        self._completer, self.calls = completer, list[Call]()

    async def complete(
        self, messages: Sequence[Message], sampling: Sampling, seed: int
    ) -> Completion:
        """Return the completer's response."""
        completion = await self._completer.complete(messages, sampling, seed)
        self.calls.append(Call(messages, sampling, seed, completion))
        return completion


def tokens_of(calls: Sequence[Call]) -> int:
    """Return the number of tokens generated."""
    return sum(len(call.completion.response_ids) for call in calls)
