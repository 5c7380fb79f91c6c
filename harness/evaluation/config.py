"""The configuration of an evaluation: frozen dataclasses, read from TOML, unknown keys refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

AGENTS: Final = ("direct", "react", "reflexion", "trained")
BACKENDS: Final = ("openai", "vllm", "hf", "expert", "random")


@dataclass(frozen=True, slots=True)
class EvalRunConfig:
    """Seeds, size and place of an evaluation."""

    name: str = ""
    """Of the folder in `output`; "" makes one of environment, split, agent and model."""
    output: str = "evaluations"
    seeds: tuple[int, ...] = (0,)
    """Each task is played once per seed."""
    tasks: int | None = None
    """So many tasks of the split, spread over its families; None plays every one."""
    concurrency: int = 32
    """Most episodes under way at once."""


@dataclass(frozen=True, slots=True)
class EvalEnvConfig:
    """The environment. `kwargs` go to `gymnasium.make`, `url` included."""

    id: str = ""
    """Such as `ALFWorld` or `agentgyms/ALFWorld-v0`; "" takes that of the model's training run."""
    split: str | None = None
    """None takes the one that results are reported on; see `harness.evaluation.defaults`."""
    max_turns: int | None = None
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The model, and where it runs."""

    name: str = ""
    """A model's name at its server, a folder or hub name, or the folder of a training run."""
    backend: str | None = None
    """One of `BACKENDS`; None: `openai` where there is a `url`, else `hf`. `expert` plays the
    environment's own expert through the same prompts and parsing, `random` any legal action."""
    url: str | None = None
    """Of an OpenAI-compatible server, such as `http://127.0.0.1:8000/v1`."""
    key_variable: str = "OPENAI_API_KEY"
    """Environment variable that holds the server's key; the key itself is never written down."""
    revision: str | None = None
    device: str | None = None
    max_batch: int = 256
    """Most responses generated at once in this process."""
    engine: dict[str, Any] = field(default_factory=dict)
    """Arguments of vLLM's engine."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Further fields of each request to a server, such as `{ reasoning_effort = "low" }`."""
    expert: str = "best"
    """Which of the environment's experts the backend `expert` plays."""


@dataclass(frozen=True, slots=True)
class EvalAgentConfig:
    """How the model is asked."""

    kind: str | None = None
    """One of `AGENTS`; None: `trained` for a training run's model, else `react`. `trained` takes
    style, context, window and longest response from the run, and on the run's environment its
    arguments and turn limit too."""
    style: str | None = None
    """Prompt style; None takes the agent's own: `direct` for direct, `think` for the others."""
    context: str | None = None
    window: int | None = None
    max_prompt: int | None = None
    """Most characters of a prompt; see `harness.agent` for what is left out first."""
    examples: int = 0
    """Worked examples in front of the task: episodes that the expert solves, of the train split."""
    trials: int | None = None
    """Attempts at a task, with reflection between them; None: 3 for reflexion, else 1."""
    memory: int = 3
    """Most reflections that a later trial is shown, the latest ones."""


@dataclass(frozen=True, slots=True)
class SamplingConfig:
    """How the model samples; None takes the papers' setting for the environment."""

    temperature: float | None = None
    top_p: float = 1.0
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ServiceConfig:
    """How a server of models is treated."""

    timeout_s: float = 120.0
    retries: int = 5
    """How often a request that failed is sent again."""
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    stream: bool = False
    cache: bool = True
    """Keep answers on disk and take equal requests (model, prompt, sampling, seed) from there."""
    cache_path: str | None = None
    """A file, or a folder for it; None: the user's cache folder."""
    price_prompt: float | None = None
    """Of a million prompt tokens, in whatever currency; with `price_response` it gives the cost."""
    price_response: float | None = None


@dataclass(frozen=True, slots=True)
class EvaluationConfig:
    """Everything an evaluation depends on."""

    run: EvalRunConfig = field(default_factory=EvalRunConfig)
    env: EvalEnvConfig = field(default_factory=EvalEnvConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    agent: EvalAgentConfig = field(default_factory=EvalAgentConfig)
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    service: ServiceConfig = field(default_factory=ServiceConfig)
