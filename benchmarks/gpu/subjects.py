"""The models that are measured: of known shapes, with random weights and a tokenizer made here."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from harness import config as configs
from harness.config import Config, LoraConfig
from harness.distributed.signals import StopSignal
from harness.model import tiny
from harness.model.policy import Policy
from harness.preflight.defaults import resolve
from harness.preflight.model_shapes import KNOWN, Shape, measure
from harness.runs.progress import Progress
from harness.training.warm_start import WarmStart

SEED: Final = 5
_SHRUNK: Final = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 600,
}


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much work is measured.

    Attributes:
        small: Models are shrunk, too: a rehearsal of the program.
        prompt: Most tokens of a prompt; the shortest has a quarter.
        response: Most tokens of a response; the shortest has a quarter.
        sequences: Responses generated at once, which are learned from then.
        micro_batch: Most tokens of a forward pass that learns.
        matmul: Rows and columns of the matrices of the peak.
        repeats: Of all that is timed, after one to warm up.
        compared: Sequences on which two precisions are compared.
        warm_episodes: Of the run's warm start.
        warm_steps: Of the run's warm start.
        warm_rate: Its learning rate.
        groups: Tasks of a step of the run.
        members: Episodes of each task.
        turns: Most turns of an episode.
    """

    small: bool
    prompt: int
    response: int
    sequences: int
    micro_batch: int
    matmul: int
    repeats: int
    compared: int
    warm_episodes: int
    warm_steps: int
    warm_rate: float
    groups: int
    members: int
    turns: int


WHOLE: Final = Sizes(False, 1024, 128, 128, 16384, 8192, 3, 16, 300, 150, 3e-4, 8, 8, 16)
SMALL: Final = Sizes(True, 40, 8, 6, 128, 96, 1, 3, 40, 40, 1e-2, 2, 4, 6)


@dataclass(frozen=True, slots=True)
class Subject:
    """A model.

    Attributes:
        name: In tables.
        source: Its name on the hub, whose shape is known here.
        rank: Of its adapters; 0 trains all weights.
    """

    name: str
    source: str
    rank: int = 0

    @property
    def precision(self) -> str:
        """That of its training."""
        return "bfloat16" if self.rank else "mixed"

    def described(self, sizes: Sizes, **tokens: Any) -> Any:
        """Return transformers' configuration."""
        from transformers import AutoConfig

        fields = {**KNOWN[self.source], **(_SHRUNK if sizes.small else {})}
        if "head_dim" in fields and sizes.small:
            fields["head_dim"] = 16
        return AutoConfig.for_model(**fields, **tokens)

    def shape(self, sizes: Sizes) -> Shape:
        """Return its shape."""
        return measure(self.described(sizes))

    def config(self, sizes: Sizes, device: str) -> Config:
        """Return the configuration of a run with this work, which the plan of memory reads."""
        changes = [
            f"policy.device={device}",
            f"policy.precision={self.precision}",
            "policy.gradient_checkpointing=true",
            f"policy.lora.rank={self.rank}",
            f"agent.max_tokens={sizes.response}",
            f"agent.max_context={sizes.prompt + sizes.response}",
            f"rollout.max_batch={sizes.sequences}",
            f"rollout.tasks_per_step={sizes.sequences}",
            "rollout.group_size=1",
            "optimizer.mini_batches=1",
            f"optimizer.micro_batch_tokens={sizes.micro_batch}",
        ]
        return resolve(configs.load("alfworld-tiny", changes))

    def policy(self, sizes: Sizes, device: str, precision: str | None = None) -> Policy:
        """Return it with seeded random weights, made on the device.

        Args:
            sizes: Of the work.
            device: `"cuda"` or `"cpu"`.
            precision: Another one than that of its training.
        """
        from transformers import AutoModelForCausalLM

        tokenizer = make_tokenizer(sizes)
        described = self.described(sizes, **tiny.special_tokens(tokenizer))
        precision = precision or self.precision
        dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
        torch.manual_seed(SEED)
        with torch.device(device):
            model = AutoModelForCausalLM.from_config(described, dtype=dtype)
        policy = Policy(model, tokenizer, device, precision=precision)
        if self.rank:
            policy.adapt(LoraConfig(rank=self.rank), self.source, SEED)
        policy.checkpoint_activations()
        return policy


SUBJECTS: Final = (
    Subject("Qwen2.5-0.5B", "Qwen/Qwen2.5-0.5B-Instruct"),
    Subject("Qwen2.5-1.5B", "Qwen/Qwen2.5-1.5B-Instruct"),
    Subject("Qwen2.5-7B, LoRA", "Qwen/Qwen2.5-7B-Instruct", rank=16),
    Subject("Qwen3-1.7B", "Qwen/Qwen3-1.7B"),
)


@lru_cache(1)
def corpus(episodes: int) -> tuple[str, ...]:
    """Return texts of ALFWorld's generated tasks, as the recipe `alfworld-tiny` shows them."""
    config = resolve(configs.load("alfworld-tiny", [f"warmstart.episodes={episodes}"]))
    progress = Progress(0, 0, 0, is_shown=False)
    shown = WarmStart(config, Path("unused"), StopSignal(0.0), progress).demonstrate()
    return tuple(shown.corpus())


def make_tokenizer(sizes: Sizes) -> Any:
    """Return a tokenizer trained on ALFWorld's texts; its tokens are the first of the model's."""
    vocabulary = _SHRUNK["vocab_size"] if sizes.small else 4000
    return tiny.make_tokenizer(corpus(sizes.warm_episodes), vocabulary)


def prompts(policy: Policy, sizes: Sizes, count: int) -> Sequence[str]:
    """Return texts of ALFWorld that no two begin alike, of a quarter to all of the tokens."""
    text = itertools.cycle(policy.encode("\n".join(corpus(sizes.warm_episodes))))
    rng = np.random.default_rng(SEED)
    lengths = rng.integers(sizes.prompt // 4, sizes.prompt * 3 // 4, count, endpoint=True)
    return [
        f"{i} " + policy.decode(list(itertools.islice(text, int(n)))) for i, n in enumerate(lengths)
    ]
