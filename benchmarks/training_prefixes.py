"""How much of a step's tokens are repeated prefixes, and what an update spares that shares them.

    python benchmarks/training.py --only prefixes [--quick]

A step is two groups of eight episodes of generated tasks with the default prompts. An expert plays
that takes three of ten actions at random; it answers with its action alone, or with 64 random
tokens before it, for a policy's thoughts differ from answer to answer.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from training_rates import SEED, Clock, Rate
from training_update import SETTINGS

from harness import config as configs
from harness.config import Config, TinyConfig
from harness.config.rollout_settings import BranchConfig
from harness.model import tiny
from harness.model.packing import Sample, micro_batch_indices, samples, to_batch
from harness.model.policy import Policy
from harness.preflight.defaults import resolve
from harness.rollouts.branches import Branches
from harness.rollouts.build import make_pool, make_prompt_agent
from harness.rollouts.collect import collect
from harness.rollouts.demonstrations import Demonstrator
from harness.rollouts.groups import CollectOptions
from harness.rollouts.views import Decision, EpisodeView
from harness.training.learner import Learner
from harness.types.rollout import Completion, Rollout
from harness.types.task_draws import TaskSampler

GROUPS, MEMBERS, NOISE = 2, 8, 0.3
CONTEXTS = ("window", "transcript")
ANSWERS: Final[dict[str, dict[str, int]]] = {
    "actions alone": {},
    "thoughts": {"thought": 64},
    "thoughts, branches": {"thought": 64, "siblings": 2},
}
"""What is answered, and siblings at each of four turns of a group."""
TIMED: Final = {"ALFWorld": ("thoughts", "thoughts, branches"), "AppWorld": ("thoughts",)}
SIZE: Final = TinyConfig(vocabulary=4000, max_length=32768)
STYLE = ('agent.style="think"', "agent.window=2")
RECIPES: Final = {
    "ALFWorld": ("alfworld-tiny", ()),
    "WebShop": ("webshop-tiny", ()),
    "Sokoban": ("sokoban-tiny", ()),
    "SearchQA": ("searchqa-gigpo-3b", ()),
    "AppWorld": ("appworld-gvpo-tiny", ("env.max_turns=16", "env.kwargs={}")),
    "SOTOPIA": ("sotopia-oprl-tiny", ()),
}
"""Recipes, and what is changed of them."""
WHOLE_STEP: Final = 10**9
"""Tokens of a micro-batch that has all sequences of a step."""
MOST_APART: Final = 1e-5


class Scripted:
    """Plays an expert's actions, some at random, with the tokens of prompts and answers.

    Args:
        config: The run.
        policy: Encodes texts.
        thought: Number of random tokens before each answer.
    """

    def __init__(self, config: Config, policy: Policy, thought: int) -> None:
        """Let nobody play yet."""
        self._agent, self._policy, self._thought = make_prompt_agent(config), policy, thought
        self._expert = Demonstrator(self._agent, config.warmstart.expert, NOISE)

    async def act(self, view: EpisodeView, seed: int) -> Decision:
        """Return the expert's action and its tokens."""
        decision = await self._expert.act(view, seed)
        prompt = self._policy.encode_chat(self._agent.messages(view))
        size, rng = len(self._policy.tokenizer), random.Random(seed)
        thought = (rng.randrange(300, size) for _ in range(self._thought))
        answer = self._policy.encode(decision.completion.text)
        said = (*thought, *answer, self._policy.tokenizer.eos_token_id)
        told = Completion(decision.completion.text, prompt, said, (-1.0,) * len(said))
        return replace(decision, completion=told)


class Steps:
    """Plays steps of an environment.

    Args:
        name: Of `RECIPES`.
    """

    def __init__(self, name: str) -> None:
        """Train a tokenizer on what an expert reads and says."""
        recipe, changes = RECIPES[name]
        self._fields, self._recipe = (*STYLE, *changes), recipe
        config = self._config("window")
        expert = Demonstrator(make_prompt_agent(config), config.warmstart.expert, NOISE)
        self._play(config, expert)
        tokenizer = tiny.make_tokenizer(expert.corpus(), SIZE.vocabulary)
        self.policy = Policy(tiny.make_model(SIZE, tokenizer, SEED), tokenizer, "cpu")

    def _config(self, context: str) -> Config:
        return resolve(configs.load(self._recipe, [*self._fields, f'agent.context="{context}"']))

    def _play(self, config: Config, actor: Any, siblings: int = 0) -> list[Rollout]:
        branch = Branches(BranchConfig(at="uniform", points=4, siblings=siblings or 1), SEED)
        pool = make_pool(config, config.env.train_split, MEMBERS, oracle=True)
        draws = TaskSampler(pool.tasks(), SEED).draw(0, GROUPS)
        options = CollectOptions(branch=branch if siblings else None)
        try:
            return asyncio.run(collect(pool, draws, actor, seed=SEED, options=options))
        finally:
            pool.close()

    def rows(self, context: str, *, thought: int = 0, siblings: int = 0) -> list[Sample]:
        """Return the training sequences of a step, each with an advantage of its own.

        Args:
            context: "window" or "transcript".
            thought: Number of random tokens before each answer.
            siblings: At each of four turns of a group, drawn at random.
        """
        config = self._config(context)
        actor = Scripted(config, self.policy, thought)
        rollouts = self._play(config, actor, siblings)
        credit = np.ones(sum(len(rollout.turns) for rollout in rollouts))
        rng = random.Random(SEED)
        found = samples(rollouts, credit, context, shared=False)
        return [replace(row, advantage=rng.gauss(0, 1)) for row in found]


@dataclass(frozen=True, slots=True)
class Shares:
    """How many of a step's tokens pass through the model.

    Attributes:
        tokens: Of all sequences.
        distinct: Share of them in sequences of which no two are equal.
        nodes: Share of them in one tree.
        nodes_of_four: Share of them in trees of four mini-batches.
    """

    tokens: int
    distinct: float
    nodes: float
    nodes_of_four: float

    @classmethod
    def of(cls, rows: Sequence[Sample]) -> Shares:
        """Count."""
        whole = sum(row.length for row in rows)
        distinct = {row.prompt_ids + row.response_ids for row in rows}
        order = np.random.default_rng(SEED).permutation(len(rows))
        of_four = sum(num_nodes([rows[i] for i in part]) for part in np.array_split(order, 4))
        left = sum(map(len, distinct)), num_nodes(rows), of_four
        return cls(whole, *(tokens / whole for tokens in left))


def num_nodes(rows: Sequence[Sample]) -> int:
    (order,) = micro_batch_indices(rows, WHOLE_STEP, share_prefixes=True)
    return to_batch([rows[i] for i in order], 0, share_prefixes=True).num_tokens


def updates(rows: Sequence[Sample], policy: Policy, rounds: int) -> dict[str, list[Rate]]:
    """Return the rates, in tokens of the rows, of updates that share prefixes and do not."""
    learners = {"one by one": False, "shared": True}
    rates: dict[str, list[Rate]] = {name: [] for name in learners}
    losses: dict[str, float] = {}
    for _ in range(rounds):
        for name, shares in learners.items():
            own = policy.trainable_copy()
            own.set_share_prefixes(shares)
            learner = Learner(own, None, SETTINGS, "clipped", {}, 1.0)
            clock = Clock()
            figures = learner.update(rows, step=0, seed=0)
            rates[name].append(clock.rate(sum(row.length for row in rows)))
            losses[name] = figures["update/loss"]
    assert abs(losses["one by one"] - losses["shared"]) < MOST_APART, losses
    return rates
