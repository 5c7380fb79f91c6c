"""The settings of training, each with its type, range, default and description."""

from __future__ import annotations

from typing import Annotated, Final, Literal, get_args

from annotated_types import Ge, Gt, Le, Lt
from pydantic import Field

from harness.config.rollout_settings import RolloutConfig
from harness.config.section import (
    Fraction,
    LearningRate,
    List,
    NonNegativeFloat,
    NonNegativeInt,
    Pair,
    PositiveFloat,
    PositiveInt,
    Section,
    Table,
)

Context = Literal["window", "transcript", "summary"]
CONTEXTS: Final = get_args(Context)
"""Ways to show an episode to the model; see `AgentConfig.context`."""
Thoughts = Literal["keep", "strip"]

TINY_MODELS: Final = ("tiny", "tiny-vl")
"""Values of `policy.model` for a new random model; the second one is a vision-language model."""


class RunConfig(Section):
    """Seed, length and output folder of a run."""

    name: str = "run"
    """Name of the run's folder."""
    seed: NonNegativeInt = 0
    """Seed of all random numbers."""
    steps: NonNegativeInt = 100
    """Training steps."""
    output: str = "runs"
    """Folder that the folder of the run is created in."""
    threads: NonNegativeInt = 0
    """CPU threads of torch; 0 takes torch's default."""
    keep_rollouts: NonNegativeInt = 0
    """Steps between saved rollouts, in `rollouts/` of the run, with tokens and images. The last
    step's are saved anyway, as texts and numbers; 0 saves no others."""
    plugins: List[str] = ()
    """Modules to import first: they register methods, losses, annotators, rewards or environments
    of one's own."""


class EnvConfig(Section):
    """The environment of training."""

    id: str = "agentgyms/ALFWorld-v0"
    """Id of the environment at Gymnasium."""
    train_split: str = "train"
    """Split of the training tasks."""
    max_turns: PositiveInt | None = None
    """Turn limit of an episode; None takes the environment's own."""
    kwargs: Table = Field(default_factory=dict)
    """Arguments of the environment, `url` of a server included."""


class LoraConfig(Section):
    """Size of low-rank adapters (LoRA, Hu et al. 2021, arXiv:2106.09685)."""

    rank: NonNegativeInt = 0
    """Rank of each adapter; 0 trains all weights without adapters."""
    alpha: PositiveFloat = 32.0
    """An adapter's update is scaled by `alpha / rank`."""
    dropout: Fraction = 0.0
    """Dropout probability of an adapter's inputs in training."""
    targets: List[str] = ("all-linear",)
    """Names of the layers that get an adapter; `"all-linear"` is all but the output layer."""


class TinyConfig(Section):
    """Size of the tiny model."""

    layers: PositiveInt = 2
    """Transformer layers."""
    hidden: PositiveInt = 128
    """Width; a multiple of twice `heads`."""
    heads: PositiveInt = 8
    """Attention heads, and as many key-value heads."""
    feed_forward: PositiveInt = 256
    """Width of the feed-forward layers."""
    vocabulary: Annotated[int, Ge(300)] = 1024
    """Largest vocabulary of the tokenizer, its 256 bytes included."""
    max_length: PositiveInt = 2048
    """Longest sequence, in tokens."""


class PolicyConfig(Section):
    """The model that is trained."""

    model: str = "tiny"
    """`"tiny"`; `"tiny-vl"`, a vision-language model; a local folder; a name on the hub;
    `"smollm2-135m"`, which a package carries; or a GGUF file."""
    device: str | None = None
    """torch's name of a device, such as `"cuda"`; None takes a GPU if there is one."""
    precision: Literal["float32", "mixed", "bfloat16"] | None = None
    """`"float32"`; `"mixed"`: weights in float32, arithmetic in bfloat16; or `"bfloat16"` for both.
    None takes mixed on a GPU; also on a CPU with `amx_bf16` or `avx512_bf16`, where one process has
    a model of at least 10 million parameters; else float32."""
    attention: str | None = None
    """transformers' name of an attention, such as `"flash_attention_2"`; None takes its default."""
    chat_template_kwargs: Table = Field(default_factory=dict)
    """Arguments of the model's chat template, such as `{ enable_thinking = false }`."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass, which saves memory and costs time."""
    replicas: PositiveInt = 1
    """Copies of the weights that several processes hold together, such as one for each machine
    (hybrid sharding); a divisor of their number. 1 shards over all processes."""
    reduce_once: bool = False
    """Sum gradients over several processes once per optimizer step, not after each micro-batch:
    less traffic, but each process then holds whole gradients."""
    sequence_parallel: PositiveInt = 1
    """Processes that share each micro-batch's tokens, for transcripts too long for one GPU
    (Ulysses); a divisor of their number and of the model's attention heads. For packed sequences
    and torch's attention."""
    ema: Annotated[float, Gt(0), Lt(1)] | None = None
    """Decay of an exponential moving average of the weights, taken after each training step, such
    as 0.9: it is what evaluations play and exports hold, while training goes on from the weights
    themselves. None for no average."""
    offload: Literal["optimizer", "parameters"] | None = None
    """What the CPU's memory holds instead of the GPU's. `"optimizer"`: AdamW's moments, of which
    one weight's are on the GPU while it is updated. `"parameters"`, for several processes: weights,
    gradients and moments; layers are gathered from there, and the CPU computes the update."""
    lora: LoraConfig = LoraConfig()
    tiny: TinyConfig = TinyConfig()


class AgentConfig(Section):
    """Prompts and sampling: prompt style, past turns shown, limits, temperature."""

    style: str = "think"
    """Prompt style; see `harness/prompts/templates`."""
    tool_format: str = "auto"
    """In the style `tools`, how the model calls tools: `"hermes"`, `"qwen3_coder"`, `"llama3"`,
    `"glm"`, or a plug-in's `module:name`. `"auto"` takes that of its chat template."""
    context: Context = "window"
    """`"window"`: each turn has its own prompt, which shows the last `window` turns.
    `"transcript"`: an episode is one growing chat, and one training sequence. `"summary"`: a
    transcript that the model summarises once it has `summary_tokens`, and goes on from there."""
    summary_tokens: PositiveInt = 4096
    """Tokens of a prompt and its answer from which on the context `"summary"` asks the model for a
    summary; the request and the summary, of at most `max_tokens`, come on top of them."""
    window: NonNegativeInt = 2
    """Past turns that a prompt shows."""
    thoughts: Thoughts = "keep"
    """Thoughts of earlier answers in a transcript: `"keep"` shows them; `"strip"` leaves them out,
    as templates of thinking models do, and begins a training sequence at each turn after one."""
    scratchpad: NonNegativeInt = 0
    """Most characters of notes: in the context `"window"` the model may write them in
    `<memory>...</memory>`, and its next prompts show the last ones. 0 for no notes."""
    max_tokens: PositiveInt | None = None
    """Longest response, in tokens. None takes 512; a model that plays on the CPU takes 64 if the
    style asks for a command alone, else 256."""
    max_thought_tokens: PositiveInt | None = None
    """Longest thought, in tokens: if `</think>` has not come after so many, it is inserted, is not
    trained, and the answer goes on. None sets no limit."""
    max_observation: PositiveInt | None = None
    """Most tokens of an observation that a prompt shows: the middle of a longer one is left out,
    with a note that says so. None sets no limit. The expert's episodes of a warm start, which may
    make the tokenizer, are shown whole."""
    max_context: Annotated[int, Ge(2)] | None = None
    """Most tokens of a prompt and its longest response; an episode that exceeds them ends without
    success. None takes the model's own limit."""
    temperature: PositiveFloat = 1.0
    """Sampling temperature in rollouts."""

    @property
    def answer_tokens(self) -> int:
        """The longest response of a resolved run, in tokens."""
        assert self.max_tokens is not None
        return self.max_tokens


class MethodConfig(Section):
    """The method, and settings that override its row in `harness.config.methods`."""

    name: str = "gigpo"
    """Name of the method; `harness methods` lists them."""
    preset: str = "paper"
    """Default settings of the estimator: the paper's (`"paper"`) or those of released code, such as
    `"verl_agent"`."""
    reward: str = "environment"
    """The training reward: the environment's own; `"success"`: 1 at the end of a solved episode and
    0 elsewhere, as in the papers, also where the environment rewards partial progress; or
    `"score"`: the score at the end of each episode, such as the share of AppWorld's tests that pass
    (LOOP, GVPO); or one of a plug-in. Also a weighted sum of these, `"turns"` (1 at each turn) and
    `"tokens"` (those that each turn's answers have), such as `"success - 0.01 * turns"`."""
    reward_scale: PositiveFloat = 10.0
    """Factor of every reward."""
    overlong_share: Annotated[float, Ge(0), Le(1)] | None = None
    """Share of `agent.max_tokens`, at its end, over which a response costs more and more reward, up
    to 1 at the limit, before `reward_scale`: DAPO's soft overlong punishment. 0 for none; None
    takes the method's setting: 0.2 of DAPO, none of the others."""
    rows: Literal["turn", "token"] | None = None
    """A row of the turn table when credit is computed; None takes the method's setting."""
    annotators: Table = Field(default_factory=dict)
    """Settings of annotators by their names, such as `{ critic = { learning_rate = 1e-5 } }`."""
    credit: Table = Field(default_factory=dict)
    """Hyperparameters of the estimator."""
    loss: Table = Field(default_factory=dict)
    """Hyperparameters of the loss."""


class OptimizerConfig(Section):
    """The optimizer, and how a step's sequences are split into mini-batches and micro-batches."""

    name: Literal["adamw", "muon"] = "adamw"
    """`"adamw"`; or `"muon"`: Muon on the matrices of hidden layers, AdamW on embeddings, output
    layer, vectors and experts, for one process and torch 2.9 or later."""
    learning_rate: LearningRate = 1e-6
    """Learning rate after the warm-up; Muon's steps are scaled to the size of AdamW's."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """Learning rate after the warm-up: `"constant"`, or decayed to `final_share` of it at the last
    step of the run, linearly (`"linear"`) or along half a cosine (`"cosine"`)."""
    final_share: Annotated[float, Ge(0), Le(1)] = 0.0
    """Share of the learning rate at the last step of a decaying schedule."""
    warmup_steps: NonNegativeInt = 0
    """Training steps of the linear warm-up."""
    weight_decay: NonNegativeFloat = 0.01
    """Weight decay, of AdamW's kind in Muon too."""
    betas: Pair[Fraction] = (0.9, 0.999)
    """AdamW's decay rates of the two moments."""
    max_grad_norm: PositiveFloat = 1.0
    """Gradients are clipped to this norm."""
    mini_batches: PositiveInt = 4
    """Optimizer steps of a pass over a training step's sequences."""
    mini_batch_size: PositiveInt | None = None
    """Most sequences of an optimizer step, as papers give it: a pass has the necessary number of
    steps, of nearly equal sizes. None uses `mini_batches`."""
    epochs: PositiveInt | None = None
    """Passes over a step's sequences; None takes the method's setting, mostly 1."""
    micro_batch_tokens: PositiveInt = 8192
    """Tokens of one forward pass, padding included."""
    packing: Literal["padded", "packed", "shared"] | None = None
    """The sequences of a micro-batch: `"padded"` to equal length; `"packed"` into one row, without
    padding; or `"shared"`: in one row too, and equal beginnings are computed once, those of an
    episode's prompts, a group's members, a branch's siblings, for models that read only, with
    torch's attention. None shares in mixed precision on the CPU; else it packs if the model's
    attention supports it."""


class WarmstartConfig(Section):
    """Supervised learning from the environment's expert before reinforcement learning."""

    episodes: NonNegativeInt = 0
    """Expert episodes; 0 makes no warm start."""
    expert: str = "best"
    """The environment's expert that plays."""
    noise: Fraction = 0.0
    """Share of random actions in the expert's episodes; they are context, not targets."""
    steps: PositiveInt = 200
    """Optimizer steps."""
    batch_size: PositiveInt = 64
    """Turns of an optimizer step; where sequences share prefixes, those of whole chats, at least so
    many."""
    learning_rate: LearningRate = 1e-5
    """Learning rate of AdamW."""


class EvalConfig(Section):
    """Evaluation on held-out tasks."""

    split: str | None = None
    """Split that is evaluated during training; None takes the environment's: `valid_seen`, or else
    `valid`, `validation`, `valid_unseen`, `dev`, `test`, or its only one beside the training's."""
    tasks: PositiveInt | None = None
    """Largest number of tasks of a split, spread over its families; None takes each once."""
    split_tasks: PositiveInt | None = None
    """Largest number of tasks of `split`, but for its evaluations as one of `final_splits`; None
    takes `tasks`."""
    every: NonNegativeInt = 10
    """Training steps between evaluations; 0 evaluates only before and after training."""
    temperature: NonNegativeFloat = 0.4
    """Sampling temperature; 0 takes the most likely token."""
    max_turns: PositiveInt | None = None
    """Turn limit of evaluation; None takes that of training."""
    kwargs: Table = Field(default_factory=dict)
    """Arguments of the environment in evaluation that differ from `env.kwargs`."""
    final_splits: List[str] = ()
    """Further splits, evaluated before and after training."""

    def count(self, split: str, *, final: bool) -> int | None:
        """Return the largest number of tasks of an evaluation, None for all; `final` at the ends.

        A split is one of `final_splits` at the ends alone.
        """
        own = None if final and split in self.final_splits else self.split_tasks
        return min((n for n in (self.tasks, own) if n is not None), default=None)


class CheckpointConfig(Section):
    """Checkpoints to resume from."""

    every: PositiveInt = 10
    """Training steps between checkpoints."""
    keep: PositiveInt = 2
    """Number of newest checkpoints to keep."""
    keep_best: NonNegativeInt = 1
    """Number of further checkpoints to keep: the best by `best`, among those with an evaluation."""
    best: Literal["success", "score"] = "success"
    """Figure of the validation split that ranks checkpoints."""
    in_background: bool = False
    """Go on while the files reach the disk: a checkpoint counts once the next step is done."""


class LogConfig(Section):
    """Outputs of metrics, beside `metrics.jsonl`."""

    outputs: List[Literal["pictures", "tensorboard", "trackio", "wandb"]] = (
        "pictures",
        "tensorboard",
    )
    """`"pictures"`: `curve.png` and `training.png`, drawn in a second or two, as `harness report`
    does too; `"tensorboard"`: event files of TensorBoard; `"trackio"`: Trackio, on this machine
    unless its own variables differ; `"wandb"`: Weights & Biases."""
    project: str | None = None
    """Project on Trackio and Weights & Biases; they need one."""
    price_per_hour: NonNegativeFloat | None = None
    """Price of the machine in US dollars per hour, for the figures of cost."""


class Config(Section):
    """All settings of a training run."""

    swept: List[str] = ()  # keys that `--sweep` varied: kept for reports, no setting
    run: RunConfig = RunConfig()
    env: EnvConfig = EnvConfig()
    policy: PolicyConfig = PolicyConfig()
    agent: AgentConfig = AgentConfig()
    rollout: RolloutConfig = RolloutConfig()
    method: MethodConfig = MethodConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    warmstart: WarmstartConfig = WarmstartConfig()
    eval: EvalConfig = EvalConfig()
    checkpoint: CheckpointConfig = CheckpointConfig()
    log: LogConfig = LogConfig()
