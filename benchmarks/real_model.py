"""A pretrained model on a CPU: rollouts and updates beside transformers' and a bare loop.

    python benchmarks/real_model.py MODEL [--quick] [--only rollouts] [--threads 1]

MODEL is `smollm2-135m`, or the folder of another model. Prompts are those of generated ALFWorld
tasks that an expert plays with some random actions; answers are the model's, of one length. All
sides get the same prompts, in turn, and their rates are compared within a round: CPU time is what
counts on a machine that others use. llama.cpp is measured, too, if the package xllamacpp is there:
on the GGUF file that the model is of, and on one of these weights in bfloat16.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from training_rates import SEED, Clock, Rate, median_ratio
from training_update import SETTINGS, BareLoop, twin

from harness import config as configs
from harness.inference.completers import Sampling
from harness.inference.completers.hf import HFCompleter
from harness.inference.completers.kept_prefixes import DEFAULT_BYTES
from harness.model.packing import Sample, micro_batches, to_batch
from harness.model.policy import Policy
from harness.model.weights import converted
from harness.model.weights.converted.gguf_writer import Original
from harness.model.weights.packed_linear import PackedLinear
from harness.preflight.defaults import resolve
from harness.rollouts.build import make_pool, make_prompt_agent
from harness.rollouts.collect import collect
from harness.rollouts.demonstrations import Demonstrator
from harness.rollouts.views import Decision, EpisodeView
from harness.training.learner import Learner
from harness.types.messages import Message
from harness.types.rollout import Completion
from harness.types.task_draws import TaskSampler

MEMBERS, NOISE = 4, 0.3
STEP = configs.replace(SETTINGS, micro_batch_tokens=2048)
Turns = list[list[Completion]]
"""The answers of each turn of all chats."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured: groups of four chats, their turns, tokens of an answer, rounds."""

    groups: int = 2
    turns: int = 5
    answer: int = 16
    rounds: int = 3


class Chats:
    """The prompts of episodes that an expert plays, turn by turn."""

    def __init__(self, context: str, size: Size) -> None:
        """Play them."""
        fields = ['agent.style="think"', "agent.window=2", f'agent.context="{context}"']
        config = resolve(configs.load("alfworld-tiny", fields))
        self._agent = make_prompt_agent(config)
        self._expert = Demonstrator(self._agent, config.warmstart.expert, NOISE)
        self._asked: dict[int, tuple[EpisodeView, list[list[Message]]]] = {}
        pool = make_pool(config, config.env.train_split, MEMBERS, oracle=True)
        draws = TaskSampler(pool.tasks(), SEED).draw(0, size.groups)
        asyncio.run(collect(pool, draws, self, seed=SEED))
        pool.close()
        long = [asked for _, asked in self._asked.values() if len(asked) >= size.turns]
        self.prompts = [asked[: size.turns] for asked in long]

    async def act(self, view: EpisodeView, seed: int) -> Decision:
        """Return the expert's action; keep the prompt."""
        decision = await self._expert.act(view, seed)
        self._asked.setdefault(id(view), (view, []))[1].append(self._agent.messages(view))
        return decision

    def play(self, completer: HFCompleter, size: Size) -> Turns:
        """Return a completer's answers; a transcript has its own earlier ones."""
        completer._stop_ids = frozenset()  # all answers have one length
        sampling = Sampling(1.0, size.answer)

        async def everything() -> Turns:
            made: Turns = []
            for turn in range(size.turns):
                calls = [
                    completer.complete(
                        _with_answers(asked[turn], [one[i] for one in made]),
                        sampling,
                        100 * turn + i,
                    )
                    for i, asked in enumerate(self.prompts)
                ]
                made.append(list(await asyncio.gather(*calls)))
            return made

        return asyncio.run(everything())


def _with_answers(messages: Sequence[Message], answers: Sequence[Completion]) -> list[Message]:
    """Return a chat with these answers in the place of the expert's."""
    left = iter(answers)
    changed: list[Any] = []
    for message in messages:
        if message["role"] != "assistant":
            changed.append(message)
            continue
        own = next(left)
        ids = own.response_ids
        changed.append({"role": "assistant", "content": own.text, "token_ids": ids})
    return changed


def generate(policy: Policy, turns: Turns, size: Size) -> None:
    """Generate as many tokens after the same prompts by transformers alone."""
    for made in turns:
        width = max(len(one.prompt_ids) for one in made)
        pads = [width - len(one.prompt_ids) for one in made]
        ids = [[policy.pad_id] * n + [*one.prompt_ids] for n, one in zip(pads, made, strict=True)]
        mask = torch.tensor([[0] * n + [1] * (width - n) for n in pads])
        policy.model.generate(
            torch.tensor(ids),
            attention_mask=mask,
            do_sample=True,
            max_new_tokens=size.answer,
            min_new_tokens=size.answer,
            pad_token_id=policy.pad_id,
        )


class LlamaCpp:
    """llama.cpp in this process, which answers all prompts of a turn at once."""

    def __init__(self, file: Path, chats: int) -> None:
        """Load a GGUF file."""
        import xllamacpp

        settings = xllamacpp.CommonParams()
        settings.model.path, settings.n_parallel = str(file), chats
        settings.n_ctx = 2048 * chats
        settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = torch.get_num_threads()
        self._server, self._threads = xllamacpp.Server(settings), ThreadPoolExecutor(chats)

    def generate(self, turns: Turns, size: Size) -> None:
        """Generate as many tokens after the same prompts."""
        sampled: dict[str, Any] = {
            "n_predict": size.answer,
            "ignore_eos": True,
            "cache_prompt": True,
        }
        sampled |= {"samplers": ["temperature"], "temperature": 1.0}
        for made in turns:
            asked = [{"prompt": list(one.prompt_ids), **sampled} for one in made]
            for reply in self._threads.map(self._server.handle_completions, asked):
                assert reply["usage"]["completion_tokens"] == size.answer, reply


def llama_cpp_files(model: str, policy: Policy, folder: Path) -> dict[str, Path]:
    """Return the GGUF files to measure llama.cpp on: none without its package, or of a folder."""
    if find_spec("xllamacpp") is None or not converted.is_converted(model):
        return {}
    source = converted.check_source(model, "MODEL")
    policy.save(folder)
    own = folder / "bfloat16.gguf"
    written = {"tokenizer": policy.tokenizer, "precision": "bfloat16"}
    Original(source).write_trained(folder, own, **written)
    return {"llama.cpp, bfloat16": own, f"llama.cpp, {source.name}": source}


def compared(
    sides: dict[str, Callable[[], object]], count: int, rounds: int
) -> dict[str, list[Rate]]:
    """Return the rates of sides that take turns; the first round warms up if there are several."""
    rates: dict[str, list[Rate]] = {name: [] for name in sides}
    for number in range(rounds + (rounds > 1)):
        for name, side in sides.items():
            clock = Clock()
            side()
            if number or rounds == 1:
                rates[name].append(clock.rate(count))
    return rates


def report(title: str, rates: dict[str, list[Rate]]) -> None:
    """Print the first side's rate, and by how much it is faster than the others."""
    first, *others = rates
    sys.stdout.write(f"{title}\n")
    for name in rates:
        per_cpu = np.median([rate.per_cpu_s for rate in rates[name]])
        line = f"  {name:<44}{per_cpu:9.1f} tokens per CPU second"
        if name in others:
            cpu, wall = median_ratio(rates[first], rates[name])
            line += f"; the first is {cpu:.2f} times as fast, {wall:.2f} by the clock"
        sys.stdout.write(line + "\n")
    sys.stdout.flush()


def products(copy: Policy, rounds: int) -> None:
    """Compare the products of a layer's packed weights with plain ones, with eight rows."""
    packed = [one for one in copy.model.modules() if isinstance(one, PackedLinear)]
    if not packed:  # of a processor without bfloat16
        return
    given = [torch.randn(8, one.in_features).to(torch.bfloat16) for one in packed]

    def ours() -> None:
        for layer, x in zip(packed, given, strict=True):
            layer(x)

    def plain() -> None:
        for layer, x in zip(packed, given, strict=True):
            torch.nn.functional.linear(x, layer.weight, layer.bias)

    with torch.inference_mode():
        ours()
        report(
            "products of all layers, 8 rows", compared({"packed": ours, "plain": plain}, 8, rounds)
        )


def rollouts(
    policies: dict[str, Policy], context: str, size: Size, files: dict[str, Path]
) -> Turns:
    """Compare rollouts in a context; return the answers."""
    chats = Chats(context, size)
    copy, exact = policies["copy"], policies["float32"]
    ours = HFCompleter(copy)
    turns = chats.play(ours, size)
    count = sum(len(one.response_ids) for made in turns for one in made)
    plain, before = HFCompleter(copy, kept_bytes=0), HFCompleter(exact, kept_bytes=0)
    keeps = HFCompleter(exact, kept_bytes=DEFAULT_BYTES)
    bare = twin(policies["bare"])
    others = {name: LlamaCpp(file, len(turns[0])) for name, file in files.items()}
    sides: dict[str, Callable[[], object]] = {
        "harness": lambda: chats.play(ours, size),
        "harness, nothing kept": lambda: chats.play(plain, size),
        "harness, float32": lambda: chats.play(before, size),
        "harness, float32, beginnings kept": lambda: chats.play(keeps, size),
        "transformers.generate, bfloat16": lambda: generate(bare, turns, size),
        "transformers.generate, float32": lambda: generate(exact, turns, size),
    }
    for name, other in others.items():
        sides[name] = partial(other.generate, turns, size)
    rates = compared(sides, count, size.rounds)
    prompts = sum(len(one.prompt_ids) for one in turns[-1]) / len(turns[-1])
    title = f"rollouts, {context}: {len(turns[0])} chats, {size.turns} turns, answers of "
    report(f"{title}{size.answer} tokens, last prompts of {prompts:.0f}", rates)
    return turns


def rows_of(turns: Turns, context: str) -> list[Sample]:
    """Return training sequences: one for each turn, or one for each chat."""
    rng = np.random.default_rng(SEED)
    if context == "window":
        said = [one for made in turns for one in made]
        return [
            Sample(one.prompt_ids, one.response_ids, one.logprobs, float(rng.standard_normal()))
            for one in said
        ]
    rows = []
    for chat in zip(*turns, strict=True):
        first, last = chat[0], chat[-1]
        start = len(first.prompt_ids)
        following = (last.prompt_ids + last.response_ids)[start:]
        turn = [-1] * len(following)
        for number, one in enumerate(chat):
            begin = len(one.prompt_ids) - start
            turn[begin : begin + len(one.response_ids)] = [number] * len(one.response_ids)
        old = tuple(value for one in chat for value in one.logprobs)
        credit = float(rng.standard_normal())
        rows.append(Sample(first.prompt_ids, following, old, credit, turn=tuple(turn)))
    return rows


def updates(policies: dict[str, Policy], turns: Turns, context: str, size: Size) -> None:
    """Compare the update of a step in a context."""
    rows = rows_of(turns, context)
    tokens = sum(row.length for row in rows)
    learner = Learner(twin(policies["mixed"]), None, STEP, "clipped", {}, 1.0)
    learner.policy.set_share_prefixes(True)

    def update(precision: str, *, shares: bool) -> Callable[[], object]:
        def step() -> None:
            learner.policy.precision, learner.policy.share_prefixes = precision, shares
            learner.update(rows, step=0, seed=0)

        return step

    batches = list(micro_batches(rows, STEP.micro_batch_tokens, learner.policy.pad_id))
    bare = BareLoop(policies["bare"], batches, all_logits=False)
    rates = compared(
        {
            "harness": update("mixed", shares=True),
            "harness, nothing shared": update("mixed", shares=False),
            "harness, float32": update("float32", shares=False),
            "bare loop, bfloat16": bare,
        },
        tokens,
        size.rounds,
    )
    report(f"update, {context}: {len(rows)} sequences, {tokens} tokens", rates)


def agreement(policies: dict[str, Policy], turns: Turns) -> None:
    """Print how far log-probabilities and gradients are from those in float32."""
    rows = rows_of(turns[:1], "window")
    found, gradients = {}, {}
    for name in ("float32", "mixed", "copy"):
        policy = policies[name]
        batch = to_batch(rows, policy.pad_id)
        with torch.set_grad_enabled(name != "copy"):
            logprob, _ = policy.logprobs(batch)
        found[name] = logprob[batch.action_mask].detach()
        if name != "copy":
            policy.model.zero_grad(set_to_none=True)
            (logprob * batch.advantage).sum().backward()
            weights = policy.model.parameters()
            gradients[name] = torch.cat(
                [one.grad.flatten() for one in weights if one.grad is not None]
            )
            policy.model.zero_grad(set_to_none=True)
    for name, exact in (("mixed", "float32"), ("copy", "float32"), ("copy", "mixed")):
        apart = (found[name] - found[exact]).abs()
        sys.stdout.write(
            f"log-probabilities, {name} beside {exact}: {apart.mean():.4f} nats in the mean, "
            f"{apart.max():.3f} at most, of {len(apart)} tokens\n"
        )
    one, other = gradients["mixed"], gradients["float32"]
    # In float32 the sum of so many squares is off by percents.
    own, wanted, product = (
        float((a * b).sum(dtype=torch.float64))
        for a, b in ((one, one), (other, other), (one, other))
    )
    cosine, norm = product / (own * wanted) ** 0.5, (own / wanted) ** 0.5
    sys.stdout.write(
        f"gradient, mixed beside float32: cosine {cosine:.5f}, norm {norm:.4f} of it\n"
    )


def main() -> None:
    """Measure, and print ratios."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("model", help="a folder, or smollm2-135m")
    parser.add_argument("--quick", action="store_true", help="one round of a few short chats")
    parser.add_argument("--only", choices=("rollouts", "updates", "agreement"))
    parser.add_argument("--context", choices=("window", "transcript"))
    parser.add_argument("--threads", type=int, default=0)
    given = parser.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)
    size = Size(1, 3, 8, 1) if given.quick else Size()
    exact = Policy.load(given.model, "cpu", precision="float32", tested=False)
    parts = twin(exact).model, exact.tokenizer, "cpu"
    mixed = Policy(*parts, precision="mixed")
    bare = Policy(twin(exact).model, exact.tokenizer, "cpu", precision="bfloat16")
    usual = Policy(*parts)
    policies = {"float32": exact, "mixed": mixed, "bare": bare, "copy": usual.generation_copy()}
    told = f"the usual precision here: {usual.precision}"
    sys.stdout.write(f"{torch.get_num_threads()} threads; {told}\n")
    products(policies["copy"], size.rounds + 1)
    with tempfile.TemporaryDirectory() as folder:
        files = llama_cpp_files(given.model, exact, Path(folder))
        for context in (given.context,) if given.context else ("window", "transcript"):
            if given.only in (None, "rollouts"):
                turns = rollouts(policies, context, size, files)
            else:
                turns = Chats(context, size).play(HFCompleter(policies["copy"]), size)
            if given.only in (None, "updates"):
                updates(policies, turns, context, size)
    if given.only in (None, "agreement"):
        agreement(policies, turns)


if __name__ == "__main__":
    main()
