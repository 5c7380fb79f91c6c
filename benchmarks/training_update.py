"""The update of a training step beside a bare loop, and beside TRL's GRPOTrainer."""

from __future__ import annotations

import asyncio
import copy
import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from training_rates import SEED, Call, Clock, Rate, Setting, afresh, warm_policy

from harness import credit
from harness.config import OptimizerConfig
from harness.credit import TurnTable
from harness.inference.completers.hf import HFCompleter
from harness.model.packing import Sample, TokenBatch, merge, micro_batches, samples
from harness.model.policy import Policy
from harness.rollouts.build import make_agent, make_pool
from harness.rollouts.collect import collect
from harness.training.learner import Learner
from harness.types.task_draws import TaskSampler

CLIP = 0.2
SETTINGS = OptimizerConfig(
    learning_rate=3e-5, weight_decay=0.0, mini_batches=1, micro_batch_tokens=8192
)


def distinct_rows(calls: Sequence[Call], count: int) -> list[Sample]:
    """Return training sequences of which no two are equal, each with credit of its own."""
    rng = np.random.default_rng(SEED)
    found: dict[Any, Sample] = {}
    for call in calls:
        said = call.completion
        credit = float(rng.standard_normal())
        row = Sample(said.prompt_ids, said.response_ids, said.logprobs, credit)
        found.setdefault((row.prompt_ids, row.response_ids), row)
    return list(found.values())[:count]


def twin(policy: Policy) -> Policy:
    """Return a policy with the same weights, to be trained on its own."""
    model, device = copy.deepcopy(policy.model), str(policy.device)
    return Policy(model, policy.tokenizer, device, precision=policy.precision)


class Update:
    """The update of a training step, as the trainer calls it."""

    def __init__(self, policy: Policy) -> None:
        """Make the learner."""
        self._learner = Learner(twin(policy), None, SETTINGS, "clipped", {}, 1.0)
        self.losses: list[float] = []

    def __call__(self, rows: Sequence[Sample]) -> None:
        """Take one optimizer step."""
        figures = self._learner.update(rows, step=0, seed=0)
        self.losses.append(figures["update/loss"])


class BareLoop:
    """Forward, log-softmax, gather, clipped loss, backward and AdamW: nothing else.

    Args:
        policy: Its weights are copied.
        batches: Packed before.
        all_logits: The output layer sees every position, as `model(tokens).logits` does; else
            only those that predict an action.
    """

    def __init__(self, policy: Policy, batches: Sequence[TokenBatch], *, all_logits: bool) -> None:
        """Copy the model."""
        self._model, self.batches, self._all = twin(policy).model, batches, all_logits
        self._optimizer = torch.optim.AdamW(
            self._model.parameters(), lr=SETTINGS.learning_rate, weight_decay=0.0
        )
        self._count = sum(int(batch.action_mask.sum()) for batch in batches)
        self._model.train()

    def __call__(self) -> None:
        """Take one optimizer step."""
        self._optimizer.zero_grad()
        for batch in self.batches:
            where, targets = batch.action_mask[:, 1:], batch.tokens[:, 1:]
            if self._all:
                logits = self._model(input_ids=batch.tokens, use_cache=False).logits[:, :-1]
                scores = torch.log_softmax(logits, dim=-1)
                logprob = scores.gather(-1, targets[..., None])[..., 0][where]
            else:
                hidden = self._model.base_model(input_ids=batch.tokens, use_cache=False)
                logits = self._model.lm_head(hidden.last_hidden_state[:, :-1][where])
                scores = torch.log_softmax(logits, dim=-1)
                logprob = scores.gather(-1, targets[where][:, None])[:, 0]
            ratio = (logprob - batch.old_logprob[batch.action_mask]).exp()
            advantage = batch.advantage[batch.action_mask]
            clipped = ratio.clamp(1 - CLIP, 1 + CLIP)
            loss = -torch.minimum(ratio * advantage, clipped * advantage).sum() / self._count
            loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self._model.parameters(), SETTINGS.max_grad_norm)
        self._optimizer.step()


def updates(rows: Sequence[Sample], policy: Policy, rounds: int) -> dict[str, list[Rate]]:
    """Return the rates, in tokens of the rows, of the update and of two bare loops."""
    tokens = sum(row.length for row in rows)
    batches = list(micro_batches(rows, SETTINGS.micro_batch_tokens, policy.pad_id))
    update = Update(policy)
    sides: dict[str, Any] = {
        "update": lambda: update(rows),
        "logits of actions": BareLoop(policy, batches, all_logits=False),
        "all logits": BareLoop(policy, batches, all_logits=True),
    }
    rates: dict[str, list[Rate]] = {name: [] for name in sides}
    for number in range(rounds + 1):
        for name, side in sides.items():
            clock = Clock()
            side()
            if number:  # the first round warms up
                rates[name].append(clock.rate(tokens))
    return rates


def merging(setting: Setting, more: Sequence[str], rounds: int) -> dict[str, Any]:
    """Return what merging equal samples spares in a step of the recipe: GiGPO, groups of eight."""
    config = setting.config(*more)
    policy = warm_policy(config)
    pool = make_pool(config, config.env.train_split, config.rollout.group_size)
    draws = TaskSampler(pool.tasks(), 0).draw(0, config.rollout.tasks_per_step)
    agent = make_agent(config, HFCompleter(afresh(policy)), config.agent.temperature, None)
    played = asyncio.run(collect(pool, draws, agent, seed=SEED))
    pool.close()
    table = TurnTable.from_rollouts(played, reward_scale=config.method.reward_scale)
    rows = samples(played, credit.get("gigpo")(table, **config.method.credit))
    whole, left = sum(row.length for row in rows), sum(row.length for row in merge(rows))
    update = Update(policy)
    batches = list(micro_batches(rows, SETTINGS.micro_batch_tokens, policy.pad_id))
    bare = BareLoop(policy, batches, all_logits=False)
    rates: dict[str, list[Rate]] = {"update": [], "bare": []}
    for _ in range(rounds):
        for name, side in (("update", lambda: update(rows)), ("bare", bare)):
            clock = Clock()
            side()
            rates[name].append(clock.rate(whole))
    return {"left": left / whole, "rates": rates}


def beside_trl(
    rows: Sequence[Sample], policy: Policy, rounds: int, python: str
) -> dict[str, list[Any]]:
    """Return the rates of the update and of TRL's trainer on the same rows, and their losses.

    TRL pads all sequences to one width; its micro-batches are the largest whose padded size is
    within the limit that ours have.
    """
    width = max(len(r.prompt_ids) for r in rows) + max(len(r.response_ids) for r in rows)
    most = max(1, SETTINGS.micro_batch_tokens // width)
    micro = max(n for n in range(2, most + 1, 2) if len(rows) % n == 0)
    update, tokens = Update(policy), sum(row.length for row in rows)
    made: dict[str, list[Any]] = {"update": [], "trl": [], "losses": []}
    with peer(rows, policy, micro, python) as step:
        for number in range(rounds + 1):
            clock = Clock()
            update(rows)
            ours, theirs = clock.rate(tokens), step()
            made["losses"].append((update.losses[-1], theirs["loss"]))
            if number:  # the first round warms up
                made["update"].append(ours)
                made["trl"].append(Rate(tokens, theirs["cpu_s"], theirs["wall_s"]))
    return made


@contextmanager
def peer(rows: Sequence[Sample], policy: Policy, micro: int, python: str) -> Iterator[Any]:
    """Give what lets TRL take a step and returns its report."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        policy.save(folder / "model")
        told = {
            "micro_batch": micro,
            "learning_rate": SETTINGS.learning_rate,
            "device": policy.device.type,
            "mixed": policy.precision == "mixed",
            "checkpointing": policy.checkpoints_activations,
            "rows": [
                {
                    "prompt": list(row.prompt_ids),
                    "completion": list(row.response_ids),
                    "old_logprob": list(row.old_logprobs),
                    "advantage": row.advantage,
                }
                for row in rows
            ],
        }
        (folder / "rows.json").write_text(json.dumps(told))
        with subprocess.Popen(
            [python, str(Path(__file__).parent / "training_peer.py"), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(folder / "errors").open("w"),
            text=True,
        ) as child:
            assert child.stdin is not None
            assert child.stdout is not None

            def step() -> dict[str, float]:
                print("step", file=child.stdin, flush=True)
                line = child.stdout.readline()  # type: ignore[union-attr]
                if not line:
                    raise RuntimeError(f"TRL ended:\n{(folder / 'errors').read_text()[-3000:]}")
                report: dict[str, float] = json.loads(line)
                return report

            try:
                yield step
            finally:
                child.kill()
