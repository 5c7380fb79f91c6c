"""Supervised learning from expert episodes: the warm start of reinforcement learning."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from tqdm import tqdm

from harness.agent import Agent, Decision, EpisodeView, choices_of
from harness.baselines.expert import expert_answer
from harness.completers import Message, images_of, texts_of
from harness.config import OptimizerConfig, WarmstartConfig
from harness.errors import ConfigError
from harness.optimizing import make_optimizer, set_learning_rate
from harness.packing import Sample
from harness.policy import Policy
from harness.rollout import Completion

_MAX_REMEMBERED = 500


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A prompt, in a transcript the chat so far, and the expert's answer to it."""

    messages: list[Message]
    answer: str


class Demonstrator:
    """Plays the expert's actions, some foreign ones in between, and keeps what is to be learned.

    The foreign actions come from this environment or another, legal or not, and show the learner
    how the expert goes on from states it would not have reached. They are never targets. Where no
    action can be listed, as of code, they are beginnings of what the expert said before;
    most of these fail.

    Args:
        agent: Whose prompts and answers are learned; its model is not asked.
        kind: Which expert of the environment; its actions are read from `info["oracle"]`.
        noise: Probability of a foreign action, in [0, 1).

    Attributes:
        demonstrations: Prompts and answers so far.
        texts: All observations and actions met, for the tokenizer of a tiny model.
    """

    def __init__(self, agent: Agent, kind: str, noise: float) -> None:
        """Raise `ConfigError` if `noise` is out of range."""
        if not 0 <= noise < 1:
            raise ConfigError(f"warmstart.noise must be in [0, 1), got {noise}")
        self._agent, self._kind, self._noise = agent, kind, noise
        self._seen: dict[str, None] = {}
        self.demonstrations: list[Demonstration] = []
        self.texts: dict[str, None] = {}

    async def act(self, view: EpisodeView, seed: int) -> Decision:
        """Return the expert's action, as the style can say it, or now and then a foreign one."""
        rng = random.Random(seed)
        actions = choices_of(view)
        self.texts.update(dict.fromkeys([*actions, view.observation, view.info["goal"]]))
        messages = self._agent.messages(view)
        if rng.random() < self._noise:
            legal = rng.random() < 0.5 and actions
            action = rng.choice(actions if legal else [*self._seen, ""])
            if not actions:
                action = action[: rng.randrange(len(action) + 1)]
            answer = self._written(action, actions)
        else:
            told = json.loads(view.info["oracle"])
            answer = expert_answer(self._agent.style, view, self._kind)
            action = self._agent.style.parse(answer, actions).action
            if told.get("optimal_remaining", 0) >= 0:  # else no move is known to be better
                self.demonstrations.append(Demonstration(messages, answer))
        if len(self._seen) < _MAX_REMEMBERED:
            self._seen.update(dict.fromkeys(actions or [action]))
        return Decision(action, Completion(answer))

    def _written(self, action: str, actions: Sequence[str]) -> str:
        """Return what stands in a transcript for a foreign action, which no style may know."""
        try:
            return self._agent.style.answer(action, actions)
        except ConfigError:
            return action

    def corpus(self) -> Iterator[str]:
        """Yield the texts a tokenizer should know: prompts, answers, observations, actions."""
        yield from self.texts
        for demonstration in self.demonstrations:
            yield from texts_of(demonstration.messages[-1:])  # earlier ones came before
            yield demonstration.answer


def fine_tune(
    policy: Policy,
    demonstrations: Sequence[Demonstration],
    config: WarmstartConfig,
    *,
    seed: int,
    micro_batch_tokens: int,
    on_step: Callable[[float], None] = lambda _: None,
) -> float:
    """Train the policy to give the expert's answers.

    Cross-entropy over the answers' tokens, AdamW, linear warm-up over a tenth of the steps and
    linear decay over the last third. What does not fit into the model's context is left out.

    Args:
        policy: Changed in place.
        demonstrations: What to imitate.
        config: Steps, batch size, learning rate.
        seed: Of the order of the demonstrations.
        micro_batch_tokens: Padded tokens of one forward pass.
        on_step: Called with each step's loss.

    Returns:
        The mean loss of the last tenth of the steps, in nats per token.

    Raises:
        ConfigError: There is nothing to imitate, or nothing that fits into the model's context.
    """
    if not demonstrations:
        raise ConfigError("the expert gave no demonstrations: raise warmstart.episodes")
    rows = [_sample(policy, demonstration) for demonstration in demonstrations]
    rows = [row for row in rows if row.length <= policy.max_length]
    if not rows:
        raise ConfigError(f"no demonstration fits into {policy.max_length} tokens: shorten prompts")
    adamw = OptimizerConfig(learning_rate=config.learning_rate, weight_decay=config.weight_decay)
    optimizer = make_optimizer(policy.model.parameters(), adamw)
    losses: list[float] = []
    batches = _batches(rows, config.batch_size, seed)
    policy.model.train()
    for step in tqdm(range(config.steps), desc="warm start", unit="step", mininterval=1.0):
        share = learning_rate_factor(step, config.steps)
        set_learning_rate(optimizer, config.learning_rate * share)
        losses.append(_fit(policy, optimizer, next(batches), micro_batch_tokens))
        on_step(losses[-1])
    return float(np.mean(losses[-max(1, len(losses) // 10) :]))


def _sample(policy: Policy, demonstration: Demonstration) -> Sample:
    prompt = policy.encode_chat(demonstration.messages)
    answer = (*policy.encode(demonstration.answer), int(policy.tokenizer.eos_token_id))
    images = images_of(demonstration.messages)
    return Sample(prompt, answer, (0.0,) * len(answer), 1.0, images)


def _batches(rows: Sequence[Sample], size: int, seed: int) -> Iterator[list[Sample]]:
    """Yield batches of shuffled passes, forever."""
    rng = np.random.default_rng(seed)
    pool: list[int] = []
    while True:
        while len(pool) < size:
            pool += rng.permutation(len(rows)).tolist()
        yield [rows[i] for i in pool[:size]]
        pool = pool[size:]


def learning_rate_factor(step: int, steps: int) -> float:
    """Return the share of the full learning rate at `step` of `steps`, in (0, 1]."""
    rise = min(1.0, (step + 1) / max(1, steps // 10))
    fall = min(1.0, (steps - step) / max(1, steps // 3))
    return min(rise, fall)


def _fit(
    policy: Policy, optimizer: torch.optim.Optimizer, rows: Sequence[Sample], max_tokens: int
) -> float:
    num_tokens = sum(len(row.response_ids) for row in rows)
    optimizer.zero_grad()
    total = 0.0
    for batch in policy.micro_batches(rows, max_tokens):
        logprob, _ = policy.logprobs(batch)
        loss = -logprob[batch.action_mask].sum() / num_tokens
        loss.backward()  # type: ignore[no-untyped-call]
        total += float(loss.detach())
    torch.nn.utils.clip_grad_norm_(policy.model.parameters(), 1.0)
    optimizer.step()
    return total
