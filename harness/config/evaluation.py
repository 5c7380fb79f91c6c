"""The settings of an evaluation, each with its type, range, default and description."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal, get_args

from annotated_types import Gt, Le
from pydantic import AfterValidator, Field

from harness.config.schema import Context, Thoughts
from harness.config.section import (
    List,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    Section,
    Table,
    folder_name,
)

AgentKind = Literal["direct", "react", "reflexion", "trained", "best-of-n", "mcts"]
AGENTS: Final = get_args(AgentKind)
Backend = Literal["openai", "vllm", "hf", "expert", "random"]
BACKENDS: Final = get_args(Backend)

_STEP: Final = re.compile(r"\d{1,9}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _checkpoint(wanted: str) -> str:
    if wanted not in ("newest", "best") and not _STEP.fullmatch(wanted):
        raise ValueError(
            f"must be newest, best or a number of steps, got {wanted!r:.40}; last-N is for harness "
            "eval --checkpoint"
        )
    return wanted


def _distinct(seeds: tuple[int, ...]) -> tuple[int, ...]:
    if not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0:
        raise ValueError(f"must be different numbers from 0 up, got {list(seeds)}")
    return seeds


def _without_env_settings(kwargs: dict[str, Any]) -> dict[str, Any]:
    for name in ("max_turns", "split"):
        if name in kwargs:
            raise ValueError(f"has {name!r}: set env.{name} instead")
    return kwargs


def _variable(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        raise ValueError(  # the value may be the key itself, so the message does not repeat it
            "is no name of an environment variable: put the key into one, such as OPENAI_API_KEY, "
            "and give its name here"
        )
    return name


class EvalRunConfig(Section):
    """Seeds, size and output folder of an evaluation."""

    name: Annotated[str, AfterValidator(folder_name)] = ""
    """Name of the folder in `output`; "" makes one of environment, split, agent and model."""
    output: str = "evaluations"
    """Folder that the folder of the evaluation is created in."""
    seeds: Annotated[List[int], AfterValidator(_distinct)] = (0,)
    """Each task is played once per seed."""
    tasks: PositiveInt | None = None
    """Number of tasks of the split, spread over its families; None plays all."""
    concurrency: PositiveInt = 32
    """Largest number of episodes at the same time."""


class EvalEnvConfig(Section):
    """The environment of an evaluation."""

    id: str = ""
    """Such as `ALFWorld` or `agentgyms/ALFWorld-v0`; "" takes that of the model's training run."""
    split: str | None = None
    """None takes the split of reported results; see `harness.evaluation.defaults`."""
    max_turns: PositiveInt | None = None
    """Turn limit of an episode; None takes that of the model's training run or of the papers, else
    the environment's own."""
    kwargs: Annotated[Table, AfterValidator(_without_env_settings)] = Field(default_factory=dict)
    """Arguments of the environment, `url` of a server included."""


class ModelConfig(Section):
    """The model, and where it runs."""

    name: str = ""
    """Name of a model at its server, a folder or hub name, `smollm2-135m`, a GGUF file, or the
    folder of a training run."""
    checkpoint: Annotated[str, AfterValidator(_checkpoint)] = "newest"
    """The checkpoint of a training run: `newest`; `best` on its validation split; or a step's, such
    as `"100"`."""
    backend: Backend | None = None
    """None: `openai` where there is a `url`, else `hf`. `expert` plays the environment's expert
    through the same prompts and parsing, `random` plays random admissible actions."""
    url: str | None = None
    """Address of an OpenAI-compatible server, such as `http://127.0.0.1:8000/v1`."""
    key_variable: Annotated[str, AfterValidator(_variable)] = "OPENAI_API_KEY"
    """Environment variable with the server's key; the key itself is never written to a file."""
    revision: str | None = None
    """Revision of a model on the hub; None takes the newest."""
    device: str | None = None
    """torch's name of a device; None takes a GPU if there is one."""
    max_batch: PositiveInt = 256
    """Largest number of responses generated at the same time in this process."""
    engine: Table = Field(default_factory=dict)
    """Arguments of vLLM's engine."""
    extra: Table = Field(default_factory=dict)
    """Further fields of each request to a server, such as `{ reasoning_effort = "low" }`. One in
    this process takes `{ chat_template_kwargs = { enable_thinking = false } }` alone."""
    expert: str = "best"
    """The environment's expert that the backend `expert` plays."""


class EvalAgentConfig(Section):
    """Agent kind, prompt style and history of the model's prompts."""

    kind: AgentKind | None = None
    """None: `trained` for a training run's model, else `react`. `trained` takes style, context,
    window and longest response from the run, and on the run's environment also its arguments and
    turn limit; so do `best-of-n` and `mcts`, which search as `search` says."""
    style: str | None = None
    """Prompt style; None takes the agent's own: `direct` for direct, `think` for the others."""
    tool_format: str = "auto"
    """In the style `tools`, how the model calls tools: `"hermes"`, `"qwen3_coder"`, `"llama3"`,
    `"glm"`, or a plug-in's `module:name`. `"auto"` takes that of the training run or of the chat
    template. Calls that a server tells apart from the text are taken as they are."""
    context: Context | None = None
    """`window`: each turn has its own prompt; `transcript`: an episode is one growing chat;
    `summary`: one that the model summarises once it has `summary_tokens`. None takes that of the
    training run or of the papers."""
    summary_tokens: PositiveInt | None = None
    """Tokens of a prompt and its answer from which on the context `summary` asks for a summary.
    None takes those of the training run, or 4096."""
    window: NonNegativeInt | None = None
    """Past turns that a prompt shows; None takes those of the training run or of the papers."""
    thoughts: Thoughts | None = None
    """Thoughts of earlier answers in a transcript: `keep` shows them, `strip` leaves them out. None
    takes that of the training run, or `keep`."""
    max_thought_tokens: PositiveInt | None = None
    """Longest thought, in tokens: if `</think>` has not come after so many, it is inserted, and the
    answer goes on. Needs a model in this process. None takes that of the training run, or none."""
    max_observation: PositiveInt | None = None
    """Most tokens of an observation that a prompt shows: the middle of a longer one is left out,
    with a note that says so. Needs a model in this process. None takes that of the training run, or
    none."""
    scratchpad: NonNegativeInt | None = None
    """Most characters of the notes that the model may write in `<memory>...</memory>` and reads in
    its next prompts, in the context `window`. None takes those of the training run, or 0: none."""
    max_prompt: PositiveInt | None = None
    """Most characters of a prompt; `harness.rollouts.agent` says what is left out first."""
    examples: NonNegativeInt = 0
    """Number of worked examples before the task: episodes of the train split that the expert
    solves."""
    trials: PositiveInt | None = None
    """Attempts at a task, with reflection between them; None: 3 for reflexion, else 1."""
    memory: PositiveInt = 3
    """Largest number of reflections in a later trial's prompt; the latest are kept."""


class SamplingConfig(Section):
    """How the model samples; None takes the papers' setting for the environment."""

    temperature: NonNegativeFloat | None = None
    """Sampling temperature; 0 takes the most likely token."""
    top_p: Annotated[float, Gt(0), Le(1)] = 1.0
    """Nucleus sampling: tokens are drawn from the most likely ones with this total probability."""
    max_tokens: PositiveInt | None = None
    """Longest response, in tokens. None: as trained, or as in the papers (512, on SOTOPIA 2048); of
    that a model on this CPU takes an eighth if the style asks for a command alone, else half."""


class SearchConfig(Section):
    """Search at inference: the agents best-of-n and mcts."""

    episodes: PositiveInt = 8
    """For best-of-n: episodes of a task, of which one is kept."""
    select: Literal["likelihood", "majority", "oracle"] | None = None
    """For best-of-n, which is kept: that with the largest log-probability of all its answers
    (`likelihood`); the first with the most frequent last action (`majority`, self-consistency); or
    the best by success and score, which no agent may know (`oracle`). None: `majority` on SearchQA,
    else `likelihood`."""
    simulations: PositiveInt = 32
    """For mcts: simulations before each turn; those of earlier turns that came through its state
    count."""
    width: PositiveInt = 4
    """For mcts: answers that a model samples in a state; their shares are the prior of its actions.
    The backends `expert` and `random` try all admissible actions, equally likely."""
    value: Literal["rollouts", "solver"] = "rollouts"
    """For mcts, the value of a state: the score of one episode that the agent plays on from there,
    or by the environment's solver, which no agent may know (`solver`)."""
    backup: Literal["mean", "max"] | None = None
    """For mcts, an action's worth: the mean return of its simulations, or that of the best known
    way behind it (`max`), which is exact where values are. None: `max` with the solver's values,
    else `mean`."""
    exploration: PositiveFloat = 1.0
    """For mcts: c of PUCT."""
    discount: Annotated[float, Gt(0), Le(1)] = 0.97
    """For mcts: factor on the score for each turn until it comes."""
    max_steps: PositiveInt | None = None
    """For mcts: most environment steps of the search at a task, beside those of the episode; None
    sets no limit."""
    max_tokens: PositiveInt | None = None
    """For mcts: most tokens of the search at a task, prompts and responses; None sets no limit. An
    answer is asked for if its prompt's bytes and its longest response are left."""
    preferences: bool = False
    """For mcts: write pairs of a better and a worse answer to `preferences.jsonl`."""
    min_visits: PositiveInt = 2
    """For mcts: both answers of a pair were tried at least so often."""


SEARCHES: Final = {
    "best-of-n": ("episodes", "select"),
    "mcts": tuple(name for name in SearchConfig.model_fields if name not in ("episodes", "select")),
}
"""The settings of each agent that searches."""


class ServiceConfig(Section):
    """Requests to a model server: time limits, retries, rates, cache and prices."""

    timeout_s: PositiveFloat = 120.0
    """Timeout of a request in seconds."""
    retries: NonNegativeInt = 5
    """Largest number of retries of a failed request."""
    requests_per_minute: PositiveFloat | None = None
    """Most requests a minute; None sets no limit."""
    tokens_per_minute: PositiveFloat | None = None
    """Most tokens a minute; None sets no limit."""
    stream: bool = False
    """Stream answers."""
    cache: bool = True
    """Cache answers on disk by request (model, prompt, sampling, seed)."""
    cache_path: str | None = None
    """File of the cache, or a folder for it; None: the user's cache folder."""
    price_prompt: NonNegativeFloat | None = None
    """Price of a million prompt tokens, in any currency; give `price_response` with it."""
    price_response: NonNegativeFloat | None = None
    """Price of a million response tokens."""


class EvaluationConfig(Section):
    """All settings of an evaluation."""

    run: EvalRunConfig = EvalRunConfig()
    env: EvalEnvConfig = EvalEnvConfig()
    model: ModelConfig = ModelConfig()
    agent: EvalAgentConfig = EvalAgentConfig()
    sampling: SamplingConfig = SamplingConfig()
    search: SearchConfig = SearchConfig()
    service: ServiceConfig = ServiceConfig()
