"""Time and memory of generating, rescoring and updating with long prompts and a large vocabulary.

    python benchmarks/training_memory.py SIDE PART

One side of one part in a process of its own, so that its peak is its own: SIDE is `ours` or `bare`,
PART is `generate`, `rescore` or `update`. It answers with a line of JSON. A Qwen2 of 126 million
random weights, a vocabulary of 151,936 and tied embeddings; two sequences of 4,096 tokens, each a
micro-batch; float32, one thread, activations computed again in the backward pass.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from process_memory import fields_of
from training_update import SETTINGS, BareLoop

from harness.config import replace
from harness.inference.completers import Sampling
from harness.inference.completers.hf import HFCompleter
from harness.model import tiny
from harness.model.logprobs import score_tokens
from harness.model.packing import Sample, micro_batches
from harness.model.policy import Policy
from harness.preflight.activations import count
from harness.preflight.model_shapes import measure
from harness.training.learner import Learner
from harness.types.messages import Message

SIDES: Final = ("bare", "ours")
PARTS: Final = ("generate", "rescore", "update")
SEQUENCES, PROMPT, RESPONSE = 2, 4096 - 64, 64
MICRO_BATCH: Final = PROMPT + RESPONSE
_BYTES: Final = 4
_OF_WEIGHT: Final = {"generate": 1, "rescore": 1, "update": 4}
"""Numbers for each weight: an update has its gradient and AdamW's two moments, too."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What a part took.

    Attributes:
        cpu_s: CPU seconds.
        peak: Most resident bytes, without those before the model was made.
    """

    cpu_s: float
    peak: int


def measured(side: str, part: str) -> Taken:
    """Return what a part takes in a process of its own."""
    call = [sys.executable, __file__, side, part]
    done = subprocess.run(call, stdout=subprocess.PIPE, text=True, check=True)
    return Taken(**json.loads(done.stdout.splitlines()[-1]))


def minimum(part: str) -> float:
    """Return the least bytes of a part.

    That is the weights; of an update also their gradients and AdamW's moments, the input of each
    layer for a micro-batch, and the activations and gradients of one layer; of rescoring the
    activations of one layer; of generating the keys and values of all sequences. No logits.
    """
    described = architecture()
    shape = measure(described)
    held = _BYTES * shape.parameters * _OF_WEIGHT[part]
    found = count(shape.text, _BYTES, _BYTES, again=True)
    inputs = _BYTES * shape.layers * shape.hidden
    more: Mapping[str, float] = {
        "generate": SEQUENCES * shape.cache_bytes(PROMPT + RESPONSE, _BYTES, whole=True),
        "rescore": MICRO_BATCH * found.forward,
        "update": MICRO_BATCH * (inputs + max(found.backward)),
    }
    return held + more[part]


def architecture(**tokens: Any) -> Any:
    """Return transformers' configuration."""
    from transformers import Qwen2Config

    return Qwen2Config(
        vocab_size=151_936,
        hidden_size=512,
        intermediate_size=2112,
        num_hidden_layers=12,
        num_attention_heads=8,
        num_key_value_heads=4,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        **tokens,
    )


def make_policy() -> Policy:
    """Return it with seeded random weights, and a tokenizer of single bytes."""
    from transformers import Qwen2ForCausalLM

    tokenizer = tiny.make_tokenizer(["a"], 300)
    torch.manual_seed(0)
    model = Qwen2ForCausalLM(architecture(**tiny.special_tokens(tokenizer)))
    policy = Policy(model, tokenizer, "cpu")
    policy.checkpoint_activations()
    return policy


def rows(prompt: int) -> Sequence[Sample]:
    """Return training sequences with prompts of a length."""
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, 151_936, (SEQUENCES, prompt + RESPONSE)).tolist()
    old = (-12.0,) * RESPONSE
    return [
        Sample(tuple(x[:prompt]), tuple(x[prompt:]), old, 1.0 - 2 * i) for i, x in enumerate(drawn)
    ]


def make_part(side: str, part: str, policy: Policy) -> Callable[[], object]:
    """Return a function that does a part, prepared by what happens once."""
    if part == "generate":
        return (generate_bare if side == "bare" else generate)(policy)
    long = rows(PROMPT)
    if part == "rescore" and side == "bare":
        return lambda: rescore_bare(policy, long)
    if part == "rescore":
        return lambda: score_tokens(policy, long, 1.0, MICRO_BATCH)
    return update_bare(policy, long) if side == "bare" else update(policy, long)


def generate(policy: Policy) -> Callable[[], object]:
    """Return what generates for all sequences at once."""
    completer = HFCompleter(policy)
    sampling = Sampling(temperature=1.0, max_tokens=RESPONSE)

    async def play() -> None:
        texts = (f"{i}" + "a" * (PROMPT - 3) for i in range(SEQUENCES))
        asked = ([Message(role="user", content=text)] for text in texts)
        await asyncio.gather(*(completer.complete(one, sampling, i) for i, one in enumerate(asked)))

    return lambda: asyncio.run(play())


def generate_bare(policy: Policy) -> Callable[[], object]:
    """Return a loop that reads the prompts, and then draws a token of each at a time."""

    @torch.no_grad()
    def play() -> None:
        tokens = torch.zeros(SEQUENCES, PROMPT, dtype=torch.long)
        cache = None
        for _ in range(RESPONSE):
            out = policy.model(input_ids=tokens, past_key_values=cache, logits_to_keep=1)
            tokens = torch.multinomial(out.logits[:, -1].softmax(-1), 1)
            cache = out.past_key_values

    policy.model.eval()
    return play


@torch.no_grad()
def rescore_bare(policy: Policy, long: Sequence[Sample]) -> None:
    """Score the responses, one sequence at a time."""
    policy.model.eval()
    for batch in micro_batches(long, MICRO_BATCH, policy.pad_id):
        hidden = policy.model.base_model(input_ids=batch.tokens, use_cache=False)
        chosen = batch.action_mask[:, 1:]
        logits = policy.model.lm_head(hidden.last_hidden_state[:, :-1][chosen])
        torch.log_softmax(logits, -1).gather(-1, batch.tokens[:, 1:][chosen][:, None])


def update(policy: Policy, long: Sequence[Sample]) -> Callable[[], object]:
    """Return an optimizer step, after one on short sequences that makes AdamW's moments."""
    settings = replace(SETTINGS, micro_batch_tokens=MICRO_BATCH)
    learner = Learner(policy, None, settings, "clipped", {}, 1.0)
    learner.update(rows(8), step=0, seed=0)
    return lambda: learner.update(long, step=1, seed=1)


def update_bare(policy: Policy, long: Sequence[Sample]) -> Callable[[], object]:
    """Return the same of a bare loop."""
    short, whole = (list(micro_batches(r, MICRO_BATCH, policy.pad_id)) for r in (rows(8), long))
    loop = BareLoop(policy, short, all_logits=False)
    loop()
    loop.batches = whole
    return loop


def main() -> None:
    torch.set_num_threads(1)
    side, part = sys.argv[1:]
    before = resident("VmRSS")
    work = make_part(side, part, make_policy())
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    start = time.process_time()
    work()
    taken = {"cpu_s": time.process_time() - start, "peak": resident("VmHWM") - before}
    sys.stdout.write(json.dumps(taken) + "\n")


def resident(name: str) -> int:
    """Return a field of this process's memory in bytes."""
    return fields_of(Path("/proc/self/status").read_text())[name]


if __name__ == "__main__":
    main()
