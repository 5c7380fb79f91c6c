"""Supervised learning from expert episodes: the warm start of reinforcement learning."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch

from harness.config import OptimizerConfig, WarmstartConfig
from harness.distributed.signals import Abandoned
from harness.model.learning_mode import set_learning
from harness.model.packing import Sample, single_turn, transcripts
from harness.model.policy import Policy
from harness.rollouts.demonstrations import Demonstration
from harness.training import sft_state
from harness.training.learner import set_learning_rate
from harness.training.optimizer import make_optimizer
from harness.types.errors import ConfigError
from harness.types.messages import images_of
from harness.types.rollout import Completion


def fine_tune(
    policy: Policy,
    demonstrations: Sequence[Demonstration],
    config: WarmstartConfig,
    *,
    seed: int,
    micro_batch_tokens: int,
    on_step: Callable[[float, int], None] = lambda _loss, _tokens: None,
    state: Path | None = None,
    is_to_stop: Callable[[], bool] = lambda: False,
) -> float:
    """Train the policy to give the expert's answers.

    Cross-entropy over the answers' tokens, AdamW, linear warm-up over a tenth of the steps and
    linear decay over the last third. Demonstrations longer than the model's context are left out.

    Args:
        policy: The policy, changed in place.
        demonstrations: The prompts and answers to imitate.
        config: Steps, batch size, learning rate.
        seed: The seed of the demonstrations' order.
        micro_batch_tokens: Padded tokens of one forward pass.
        on_step: Called with each step's loss and the tokens that passed through the model.
        state: The folder to save at a stop and to resume from, if it exists.
        is_to_stop: Called after each step.

    Returns:
        The mean loss of the last tenth of the steps, in nats per token.

    Raises:
        Abandoned: The training was stopped, and its state is saved.
        CheckpointError: The state is damaged.
        ConfigError: There are no demonstrations, or none fits into the model's context.
    """
    if not demonstrations:
        raise ConfigError("the expert gave no demonstrations: raise warmstart.episodes")
    answers = [_answer(policy, demonstration) for demonstration in demonstrations]
    answers = [one for one in answers if len(one.prompt_ids) + one.num_sampled <= policy.max_length]
    if not answers:
        raise ConfigError(f"no demonstration fits into {policy.max_length} tokens: shorten prompts")
    adamw = OptimizerConfig(learning_rate=config.learning_rate)
    optimizer = make_optimizer(policy.model, adamw, offload=policy.layout.offload == "optimizer")
    losses = sft_state.losses_of(state) if state else []
    if state is not None and losses:
        sft_state.read(state, policy, optimizer)
    batches = _batches(_rows(policy, answers), config.batch_size, seed)
    for _ in losses:  # a resumed warm start takes the batches after those it learned from
        next(batches)
    set_learning(policy.model)
    for step in range(len(losses), config.steps):
        share = learning_rate_factor(step, config.steps)
        set_learning_rate(optimizer, config.learning_rate * share)
        loss, tokens = _optimizer_step(policy, optimizer, next(batches), micro_batch_tokens)
        losses.append(loss)
        on_step(loss, tokens)
        if state is not None and is_to_stop():
            sft_state.write(state, policy, optimizer, losses)
            raise Abandoned
    return float(np.mean(losses[-max(1, len(losses) // 10) :]))


def _answer(policy: Policy, demonstration: Demonstration) -> Completion:
    prompt = policy.encode_chat(demonstration.messages)
    answer = policy.chat_tokenizer.encode_response(demonstration.answer, demonstration.messages)
    images = images_of(demonstration.messages)
    return Completion(demonstration.answer, prompt, answer, (0.0,) * len(answer), images=images)


def _rows(policy: Policy, answers: Sequence[Completion]) -> list[Sample]:
    """Return a row for each answer; for each chat, where equal beginnings are computed once."""
    if not policy.share_prefixes:
        return [single_turn(one, 1.0) for one in answers]
    # Sorted, a prompt is followed by those that begin with it and its answer.
    in_order = sorted(answers, key=lambda one: one.prompt_ids)
    return list(transcripts([(one, 1.0) for one in in_order]))


def _batches(rows: Sequence[Sample], size: int, seed: int) -> Iterator[list[Sample]]:
    """Yield batches of `size` answers, or the rows with at least so many, from shuffled passes."""
    rng = np.random.default_rng(seed)
    pool: list[int] = []
    while True:
        batch: list[Sample] = []
        answers = 0
        while answers < size:
            # A batch may hold the end of a pass and the beginning of the next.
            pool = pool or rng.permutation(len(rows)).tolist()
            batch.append(rows[pool.pop(0)])
            answers += len({turn for turn in batch[-1].turn if turn >= 0}) or 1
        yield batch


def learning_rate_factor(step: int, steps: int) -> float:
    """Return the share of the full learning rate at `step` of `steps`, in (0, 1]."""
    rise = min(1.0, (step + 1) / max(1, steps // 10))
    fall = min(1.0, (steps - step) / max(1, steps // 3))
    return min(rise, fall)


def _optimizer_step(
    policy: Policy, optimizer: torch.optim.Optimizer, rows: Sequence[Sample], max_tokens: int
) -> tuple[float, int]:
    """Take a step and return its loss and the tokens that passed through the model."""
    num_tokens = sum(row.num_actions for row in rows)  # of the batch, not the micro-batch
    optimizer.zero_grad()
    total, passed = 0.0, 0
    for batch in policy.micro_batches(rows, max_tokens):
        logprob, _ = policy.logprobs(batch)  # [B, T]
        loss = -logprob[batch.action_mask].sum() / num_tokens
        loss.backward()  # type: ignore[no-untyped-call]
        total, passed = total + float(loss.detach()), passed + batch.num_tokens
    torch.nn.utils.clip_grad_norm_(policy.model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()  # rollouts come next, which take memory
    return total, passed
