"""Trains a tiny Qwen with GiGPO out of the library's parts, without a trainer; read it downwards.

    pip install -e '.[harness]'
    python examples/train_by_hand.py

The agent walks a corridor, takes a key and opens a door. An expert's demonstrations, too few of
them, teach it the language; reinforcement learning does the rest. Takes about a minute on one core.
"""

import argparse
import asyncio

import numpy as np
import torch

from harness import credit, losses, prompts
from harness.config import TinyConfig, WarmstartConfig
from harness.credit import TurnTable
from harness.inference import HFCompleter, Sampling
from harness.model import Policy, samples, tiny
from harness.rollouts import Agent, Demonstrator, EnvPool
from harness.rollouts.collect import collect
from harness.training import fine_tune
from harness.types import TaskSampler

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--steps", type=int, default=25)
arguments = parser.parse_args()

ENV = "agentgyms/Corridor-v0"
MAX_TURNS = 8  # what the longest of the corridors needs
TASKS, GROUP = 8, 8  # in each step, 8 rollouts of 8 tasks
SEEDS = np.random.SeedSequence(arguments.seed)
torch.set_num_threads(1)  # so that figures do not depend on the number of cores


def new_seed() -> int:
    """Return the next one of the run's seeds."""
    return int(SEEDS.spawn(1)[0].generate_state(1)[0])


# The agent's prompt: the goal, the first observation and the last two turns. The answer is the
# action. The same style writes the expert's answers and parses the model's.

style = prompts.load("compact", ENV)
sampling = Sampling(temperature=1.0, max_tokens=8)

# 1. Demonstrations: the expert plays 40 episodes. 15 % of its turns are random instead, so that the
# model sees how to go on from a mistake. Only the expert's own actions are imitated.

expert = Demonstrator(Agent(None, style, sampling, window=2), kind="best", noise=0.15)
pool = EnvPool(ENV, group_size=1, max_live=64, max_turns=MAX_TURNS, oracle=True)
tasks = TaskSampler(pool.tasks(), new_seed()).draw(0, 40)
asyncio.run(collect(pool, tasks, expert, seed=new_seed()))
pool.close()

# 2. The policy: Qwen2 with 0.4 million random weights and a tokenizer made for these texts. A few
# steps of supervised learning leave it better than chance, and far from good.

size = TinyConfig()
tokenizer = tiny.make_tokenizer(expert.corpus(), size.vocabulary)
policy = Policy(tiny.make_model(size, tokenizer, new_seed()), tokenizer, device="cpu")
warm_start = WarmstartConfig(steps=6, batch_size=64, learning_rate=3e-3)
fine_tune(policy, expert.demonstrations, warm_start, seed=new_seed(), micro_batch_tokens=8192)

# 3. Reinforcement learning.

agent = Agent(HFCompleter(policy), style, sampling, window=2)
pool = EnvPool(ENV, group_size=GROUP, max_live=TASKS * GROUP, max_turns=MAX_TURNS)
sampler = TaskSampler(pool.tasks(), new_seed())
gigpo = credit.get("gigpo")  # or another one of `harness methods`
policy_loss = losses.get("clipped")  # PPO's
optimizer = torch.optim.AdamW(policy.model.parameters(), lr=3e-4, betas=(0.9, 0.99))
rng = np.random.default_rng(new_seed())
successes = []

for step in range(1, arguments.steps + 1):
    # Play: each task is a group of rollouts that start in one state (`agentgyms.make_group`). All
    # episodes run at once; the completer batches their requests.
    tasks = sampler.draw(step, TASKS)
    rollouts = asyncio.run(collect(pool, tasks, agent, seed=new_seed()))
    successes.append(np.mean([rollout.success for rollout in rollouts]))

    # Credit: a table with one row for each of the N turns, numpy alone. GiGPO compares rollouts of
    # a task, and turns of a group that were taken in the same state (`table.state_key`).
    table = TurnTable.from_rollouts(rollouts, reward_scale=2.0)
    advantage = gigpo(table, norm="mean", invalid_penalty=0.02)  # [N]

    # Learn: each turn is a sequence, its prompt and its answer, with the answer's log-probabilities
    # at sampling. Two mini-batches, an optimizer step each; micro-batches limit the memory.
    rows = samples(rollouts, advantage)
    for part in np.array_split(rng.permutation(len(rows)), 2):
        mini_batch = [rows[i] for i in part]
        num_tokens = sum(row.num_actions for row in mini_batch)
        optimizer.zero_grad()
        for batch in policy.micro_batches(mini_batch, max_tokens=8192):  # B sequences, T tokens
            logprob, _entropy = policy.logprobs(batch, sampling.temperature)  # [B, T]
            loss, metrics = policy_loss(logprob, batch, num_tokens=num_tokens)
            loss.backward()
        torch.nn.utils.clip_grad_norm_(policy.model.parameters(), 1.0)
        optimizer.step()

    figures = f"{len(rows)} turns, mean advantage {np.abs(advantage).mean():.2f}"
    print(f"step {step:2d}: success {successes[-1]:4.0%} of {len(rollouts)} episodes, {figures}")

pool.close()
first, last = np.mean(successes[:3]), np.mean(successes[-3:])
print(f"success: {first:.0%} in the first three steps, {last:.0%} in the last three")
