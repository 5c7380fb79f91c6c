"""The configuration of a run: frozen dataclasses, read from TOML, unknown keys refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import sections
from harness.errors import ConfigError
from harness.lora import LoraConfig
from harness.tiny import TinyConfig

RECIPES = Path(__file__).parent / "recipes"


@dataclass(frozen=True, slots=True)
class RunConfig:
    """Seed, length and place of a run."""

    name: str = "run"
    seed: int = 0
    steps: int = 100
    output: str = "runs"
    threads: int = 0
    """CPU threads of torch; 0 leaves torch's own choice."""
    keep_rollouts: int = 0
    """Every so many steps the rollouts are kept, in `rollouts/` of the run; 0 keeps none."""


@dataclass(frozen=True, slots=True)
class EnvConfig:
    """The environment. `kwargs` go to `gymnasium.make`, `url` included."""

    id: str = "agentgyms/ALFWorld-v0"
    train_split: str = "train"
    max_turns: int | None = None
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PolicyConfig:
    """The model: `"tiny"`, `"tiny-vl"`, which sees, a local folder, or a hub name."""

    model: str = "tiny"
    device: str | None = None
    precision: str | None = None
    """`"float32"`; `"mixed"`: weights in float32, arithmetic in bfloat16; or `"bfloat16"` for both.
    None takes mixed on a GPU and float32 on the CPU."""
    attention: str | None = None
    """Transformers' name of an attention, such as `"flash_attention_2"`; None leaves its choice."""
    gradient_checkpointing: bool = False
    lora: LoraConfig = field(default_factory=LoraConfig)
    tiny: TinyConfig = field(default_factory=TinyConfig)


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """How the model is asked: prompt style, past turns shown, sampling."""

    style: str = "think"
    context: str = "window"
    """`"window"`: each turn has a prompt of its own, with the last `window` turns in it.
    `"transcript"`: an episode is one growing chat, and one training sequence."""
    window: int = 2
    max_tokens: int = 512
    max_context: int | None = None
    """Most tokens of a prompt and the longest response to it; an episode that outgrows them ends
    as lost. None takes the model's own limit."""
    temperature: float = 1.0


@dataclass(frozen=True, slots=True)
class RolloutConfig:
    """Who generates, and how much is collected for one training step."""

    backend: str = "hf"
    """`"hf"`: the policy itself; `"vllm"`: an engine in this process; `"server"`: its servers
    at `urls`, on other GPUs or machines (vLLM both)."""
    urls: tuple[str, ...] = ()
    """Addresses of servers, such as `"http://127.0.0.1:8000"`; requests are spread over them."""
    engine: dict[str, Any] = field(default_factory=dict)
    """Arguments of vLLM's engine in this process, such as `{ gpu_memory_utilization = 0.5 }`."""
    transfer: str | None = None
    """How weights reach servers after an update: `"disk"`, by a folder that they see too;
    `"nccl"`, from GPU to GPU; or `"ipc"`, on the same GPU. None takes nccl from a GPU and disk from
    the CPU. In this process they pass from tensor to tensor (`"reload"`)."""
    sleep: bool = False
    """vLLM in this process gives its GPU memory back while the policy learns."""
    old_logprobs: str | None = None
    """Of what the update compares with: `"rollout"`, the generator's own; `"recompute"`, those of
    the policy before the update. None recomputes where another engine generates."""
    mismatch_cap: float | None = None
    """Largest weight of a token where recomputed probabilities differ from the generator's
    (truncated importance sampling); None weighs none."""

    tasks_per_step: int = 16
    group_size: int = 8
    max_live: int = 256
    """Most environments open at once, in each process."""
    max_batch: int = 256
    """Most responses generated at once."""
    dynamic_sampling: bool | None = None
    """Drop groups whose returns are all equal and play other tasks in their place (DAPO); None
    takes the method's own."""
    max_draws: int = 10
    """Most rounds of tasks that one step of dynamic sampling plays."""
    enough_members: int | None = None
    """A group's other episodes are stopped once so many have ended (GVPO); None waits for all,
    unless the method has its own."""
    enough_share: float | None = None
    """All episodes still being played are stopped once this share of the groups has ended: all
    their episodes, or `enough_members` of them (GVPO)."""
    enough_turns: int | None = None
    """No episode is stopped for that before so many turns (GVPO: 30)."""


@dataclass(frozen=True, slots=True)
class MethodConfig:
    """The method, and settings that differ from its row in `harness.methods`."""

    name: str = "gigpo"
    preset: str = "paper"
    reward: str = "environment"
    """What is trained on: the environment's own reward; `"success"`: 1 at the end of a solved
    episode and 0 everywhere else, as the papers do where the environment pays for parts too; or
    `"score"`: at its end the score of every episode, such as the share of AppWorld's tests that
    pass (LOOP, GVPO)."""
    reward_scale: float = 10.0
    rows: str | None = None
    """A row of the turn table when credit is computed: `"turn"` or `"token"`; None takes the
    method's own."""
    annotators: dict[str, Any] = field(default_factory=dict)
    """Settings of annotators by their names, such as `{ critic = { learning_rate = 1e-5 } }`."""
    credit: dict[str, Any] = field(default_factory=dict)
    loss: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OptimizerConfig:
    """AdamW, and how a step's turns are cut into updates."""

    learning_rate: float = 1e-6
    schedule: str = "constant"
    """After the warm-up: `"constant"`, or down to `final_share` of it at the last step of the run
    along a line (`"linear"`) or half a cosine (`"cosine"`)."""
    final_share: float = 0.0
    warmup_steps: int = 0
    weight_decay: float = 0.01
    betas: tuple[float, float] = (0.9, 0.999)
    max_grad_norm: float = 1.0
    mini_batches: int = 4
    """Optimizer steps of a pass over a training step's sequences."""
    mini_batch_size: int | None = None
    """Most sequences of an optimizer step, as papers give it: a pass has as many steps as are
    needed, nearly equal in size. None goes by `mini_batches`."""
    epochs: int | None = None
    """Passes over a step's turns; None takes the method's own, mostly 1."""
    max_kl: float | None = None
    """No further pass follows one in which the policy was, on average over tokens, more than so
    many nats away from the one that played; None makes them all."""
    micro_batch_tokens: int = 8192
    """Tokens of one forward pass, padding included."""
    padding_free: bool | None = None
    """Sequences of a micro-batch lie one behind the other, without padding; None does so where the
    model's attention can."""


@dataclass(frozen=True, slots=True)
class WarmstartConfig:
    """Supervised learning from the environment's expert before reinforcement learning."""

    episodes: int = 0
    """Expert episodes; 0 leaves the warm start out."""
    expert: str = "best"
    noise: float = 0.0
    """Share of foreign actions mixed into the expert's episodes; they are context, not targets."""
    steps: int = 200
    batch_size: int = 64
    learning_rate: float = 1e-5
    weight_decay: float = 0.01


@dataclass(frozen=True, slots=True)
class EvalConfig:
    """Evaluation on held-out tasks."""

    split: str = "valid_seen"
    tasks: int | None = None
    """The first so many tasks of the split, spread over its families; None takes each once."""
    every: int = 10
    temperature: float = 0.4
    max_turns: int | None = None
    """Turn limit of evaluation; None takes that of training."""
    kwargs: dict[str, Any] = field(default_factory=dict)
    """Arguments of the environment in evaluation that differ from `env.kwargs`."""
    final_splits: tuple[str, ...] = ()
    """Splits evaluated once more before and after training, each task once."""


@dataclass(frozen=True, slots=True)
class CheckpointConfig:
    """What is kept to resume from."""

    every: int = 10
    keep: int = 2
    """The newest so many are kept."""
    keep_best: int = 1
    """Beside them the best so many by `best`, among those saved with an evaluation."""
    best: str = "success"
    """What is best on the validation split: `"success"` or `"score"`."""


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Where figures go, beside `metrics.jsonl`."""

    tensorboard: bool = True
    wandb: str | None = None
    """Project on Weights & Biases; None sends nothing."""
    price_per_hour: float | None = None
    """Of the machine, in US dollars: figures of cost come from it."""


@dataclass(frozen=True, slots=True)
class Config:
    """Everything a run depends on."""

    run: RunConfig = field(default_factory=RunConfig)
    env: EnvConfig = field(default_factory=EnvConfig)
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    agent: AgentConfig = field(default_factory=AgentConfig)
    rollout: RolloutConfig = field(default_factory=RolloutConfig)
    method: MethodConfig = field(default_factory=MethodConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    warmstart: WarmstartConfig = field(default_factory=WarmstartConfig)
    eval: EvalConfig = field(default_factory=EvalConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    log: LogConfig = field(default_factory=LogConfig)


def load(path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Read a recipe.

    Args:
        path: A TOML file, or the name of one in `harness/recipes`.
        overrides: Such as `run.seed=3` or `env.kwargs.rooms="large"`; values are TOML, else text.

    Raises:
        ConfigError: The file is missing or no TOML, or a key or value is wrong.
    """
    return from_dict(sections.overridden(sections.read(_find(path)), overrides))


def _find(path: str | Path) -> Path:
    for candidate in (Path(path), RECIPES / f"{path}.toml", RECIPES / str(path)):
        if candidate.is_file():
            return candidate
    known = ", ".join(sorted(p.stem for p in RECIPES.glob("*.toml")))
    raise ConfigError(f"there is no recipe {path}: expected a TOML file or one of {known}")


def from_dict(values: Mapping[str, Any]) -> Config:
    """Return the configuration of nested dictionaries; missing keys take their defaults.

    Raises:
        ConfigError: A key is unknown or a value has the wrong type.
    """
    return sections.build(Config, values)


def to_dict(config: Config) -> dict[str, Any]:
    """Return the resolved configuration as nested dictionaries, JSON-plain."""
    return dataclasses.asdict(config)


def digest(config: Config) -> str:
    """Return the first 12 hex characters of the configuration's SHA-256."""
    return sections.digest(to_dict(config))
