"""The settings of rollouts: the generator, the tasks of a step, and corrections of its mismatch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from annotated_types import Ge, Gt, Le
from pydantic import AfterValidator, Field

from harness.config.section import (
    List,
    NonNegativeInt,
    Pair,
    PositiveInt,
    Section,
    Share,
    Table,
)
from harness.types.errors import ConfigError
from harness.types.hyperparameters import number


def _check_budget(budget: dict[str, Any]) -> dict[str, Any]:
    for name, most in budget.items():
        if name not in ("steps", "tokens") or type(most) is not int or most < 1:
            raise ValueError(
                f"has {name!r:.40} = {most!r:.40}: expected steps or tokens, each an int at least 1"
            )
    return budget


class BranchConfig(Section):
    """Branches: once a group's episodes have ended, siblings go on from some of their turns."""

    at: Literal["every", "uniform", "entropy", "divergent", "pivotal"] | None = None
    """Turns that siblings branch at: `"every"`, each n-th turn of an episode; `"uniform"`, drawn at
    random; `"entropy"`, those whose tokens were least likely; `"divergent"`, in states where ECPO
    finds an action taken once ahead of one taken more often; or `"pivotal"`, those that changed the
    measured value most, which needs continuations. None for no branches."""
    every: PositiveInt = 4
    """The n of `"every"`."""
    points: PositiveInt = 4
    """Most turns of a group that siblings branch at in a round. The first turn is none: its
    siblings would be further episodes of the group."""
    siblings: PositiveInt = 1
    """Siblings at each of these turns."""
    rounds: PositiveInt = 1
    """Rounds of branching, of `points` new turns each: from the second on siblings' turns are among
    those that are chosen from."""
    budget: Annotated[Table, AfterValidator(_check_budget)] = Field(default_factory=dict)
    """What a group's siblings may use before they branch at no further turn: `steps` of the
    environment, `tokens` of prompts and responses, or both. Empty sets no limit."""


class CurriculumConfig(Section):
    """Tasks that nearly always or hardly ever succeed in training are drawn less often."""

    by: Literal["task", "family"] | None = None
    """The unit of measurement: each task, or each family as a whole. None draws all alike."""
    bounds: Pair[Share] = (0.1, 0.9)
    """Success up to which a task is in the hard pool, and from which on it is in the easy one. A
    task that was not played yet is in neither."""
    shares: Pair[Share] = (0.5, 0.1)
    """Shares of the hard and of the easy tasks that a pass over the split draws."""


@dataclass(frozen=True, slots=True)
class Correction:
    """How tokens of another generator are corrected; r is the policy's probability over its."""

    cap: float | None = None  # largest r of a token's weight; None: each weighs 1
    floor: float = 0.0  # smallest r
    masks: bool = False  # weight 0, not the cap, where r is out of bounds
    unit: str | None = None  # "turn" or "sequence", left out where its ratio is out of bounds
    ratio: str = "geometric"  # or "product", of its tokens' r
    low: float = 0.0
    high: float = math.inf


_BOUNDS: Final = {"token": (0.0, 2.0), "geometric": (0.999, 1.001), "product": (0.5, 2.0)}
"""Least and largest ratio; of turns and sequences verl's presets, docs/algo/rollout_corr.md."""


def complete_bounds(kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return `rollout.correction_bounds` with their defaults; `ConfigError` if one is wrong."""
    bounds: dict[str, Any] = {}
    if kind == "clip":
        bounds = {"cap": 2.0}
    elif kind == "reject":
        unit, ratio = given.get("unit", "token"), given.get("ratio", "geometric")
        low, high = _BOUNDS.get("token" if unit == "token" else str(ratio), (0.0, 0.0))
        bounds = {"unit": unit, "low": low, "high": high}
        if unit != "token":
            bounds |= {"ratio": ratio, **({"cap": 2.0} if "cap" in given else {})}
    for name, value in given.items():
        if name not in bounds:
            known = f"expected one of {', '.join(bounds)}" if bounds else "leave it out"
            raise ConfigError(
                f"rollout.correction_bounds has no {name!r:.40} if rollout.correction is {kind!r}: "
                f"{known}"
            )
        bounds[name] = value
    _check_bounds(bounds)
    return bounds


def _check_bounds(bounds: Mapping[str, Any]) -> None:
    choices = {"unit": ("token", "turn", "sequence"), "ratio": ("geometric", "product")}
    for name, value in bounds.items():
        if name in choices and value not in choices[name]:
            known = ", ".join(map(repr, choices[name]))
            raise ConfigError(
                f"rollout.correction_bounds.{name} must be one of {known}, got {value!r:.40}"
            )
        if name not in choices:
            number(f"rollout.correction_bounds.{name}", value, 0.0)
    if bounds.get("cap") == 0:
        raise ConfigError("rollout.correction_bounds.cap must be greater than 0, got 0")
    if "low" in bounds and bounds["low"] >= bounds["high"]:
        raise ConfigError(
            f"rollout.correction_bounds.low is {bounds['low']}, not less than "
            f"rollout.correction_bounds.high = {bounds['high']}: all would be rejected"
        )


def correction_of(rollout: RolloutConfig) -> Correction:
    """Return the correction of resolved settings."""
    bounds = dict(rollout.correction_bounds)
    if bounds.get("unit") == "token":
        return Correction(bounds["high"], bounds["low"], masks=True)
    return Correction(**bounds)


class RolloutConfig(Section):
    """The generator, and the number of rollouts of a training step."""

    backend: Literal["hf", "vllm", "server"] = "hf"
    """`"hf"`: the policy itself; `"vllm"`: an engine in this process; `"server"`: its servers
    at `urls`, on other GPUs or machines (vLLM both)."""
    urls: List[str] = ()
    """Addresses of servers, such as `"http://127.0.0.1:8000"`; requests are spread over them."""
    engine: Table = Field(default_factory=dict)
    """Arguments of vLLM's engine in this process, such as `{ gpu_memory_utilization = 0.5 }`."""
    transfer: Literal["reload", "disk", "nccl", "ipc"] | None = None
    """How servers get the weights after an update: `"disk"`, through a shared folder; `"nccl"`,
    from GPU to GPU; or `"ipc"`, on the same GPU. None takes nccl on a GPU and disk on the CPU.
    Within this process tensors are copied (`"reload"`)."""
    sleep: bool = False
    """vLLM in this process releases its GPU memory while the policy is updated."""
    ahead: Literal[0, 1, "partial"] = 0
    """1: while the policy learns from a step's rollouts, those of the next are played, by weights
    that are one step old at most; for servers, and for `"hf"` with a copy of the weights.
    `"partial"`: weights also change while episodes are under way, and a step learns from the groups
    that have ended; the others go on with the new weights."""
    old_logprobs: Literal["rollout", "recompute"] | None = None
    """Old log-probabilities of the loss: `"recompute"`, those of the policy before the update; or
    `"rollout"`, the generator's, which spares a forward pass and lets the loss's own ratio correct
    the mismatch. None recomputes if another engine generates, or with `ahead`."""
    correction: Literal["none", "clip", "reject"] | None = None
    """What corrects for a generator whose probabilities differ, by r, the policy's over its own:
    `"clip"` weighs a token by min(r, `cap`) (TIS); `"reject"` leaves tokens, turns or sequences out
    whose r is out of bounds (MIS, IcePop); or `"none"`. None clips if another engine generates, or
    with `ahead`."""
    correction_bounds: Table = Field(default_factory=dict)
    """For `"clip"`: `cap`, 2 if not given. For `"reject"`: `unit` (`"token"`, `"turn"` or
    `"sequence"`), `low` and `high`; of a turn or sequence also `ratio`, the `"geometric"` mean of
    its tokens' r or their `"product"`, and `cap`, which clips the rest."""
    tasks_per_step: PositiveInt = 16
    """Tasks of a training step; each has one group of episodes."""
    group_size: PositiveInt = 8
    """Episodes of a group."""
    max_live: PositiveInt = 256
    """Largest number of open environments in each process."""
    max_batch: PositiveInt = 256
    """Largest number of responses generated at the same time."""
    cache_gb: Annotated[float, Ge(0)] | None = None
    """Most GB of keys and values that `"hf"` keeps. A prompt that begins like an earlier one, as a
    transcript's next turn does, then passes through the model only from there on. It changes the
    last bits of log-probabilities. None takes 1 on the CPU, and 0 on a GPU and for models in
    float32 with less than 10 million weights. With `ahead` nothing is kept."""
    dynamic_sampling: bool | None = None
    """Replace groups whose returns are all equal by groups of other tasks, in at most ten
    rounds (DAPO); None takes the
    method's setting."""
    enough_members: PositiveInt | None = None
    """Stop the other episodes of a group once this many have ended (GVPO); None waits for all,
    unless the method sets a number."""
    enough_share: Annotated[float, Gt(0), Le(1)] | None = None
    """Stop all running episodes once this share of a step's groups, of all processes together, has
    ended: all their episodes, or `enough_members` of them (GVPO)."""
    enough_turns: NonNegativeInt | None = None
    """Number of turns before which an episode is not stopped early (GVPO: 30)."""
    recorded: List[str] = ()
    """Files of rollouts, or folders of them such as `"runs/NAME/rollouts"`, that supervised and
    preference methods learn from in place of live play; a step takes `tasks_per_step` groups. Or
    files of step preferences, as a search writes them, for preference methods: `dpo` on them is
    DPO-MCTS (SALT, Table 2), and a step takes `tasks_per_step` of them."""
    branch: BranchConfig = BranchConfig()
    curriculum: CurriculumConfig = CurriculumConfig()
    gateway: str | None = None
    """Address, such as `"127.0.0.1:8600"`, at which agents of others play with the policy over
    OpenAI's or Anthropic's protocol; a step takes `tasks_per_step` whole groups of theirs. None
    lets the harness's own agent play."""

    @property
    def is_live(self) -> bool:
        """Whether rollouts are played, and not read from files."""
        return not self.recorded


def read_address(text: str) -> tuple[str, int]:
    """Return the host and port of an address such as `127.0.0.1:8600`, or raise `ConfigError`."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(
            f"rollout.gateway must be HOST:PORT, such as 127.0.0.1:8600, got {text!r}"
        )
    return host, int(port)
