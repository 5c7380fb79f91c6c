"""Trains in TRL on household tasks, with the credit of this harness for each answer.

pip install -e '.[harness,trl]'
python examples/clients/trl_training.py Qwen/Qwen3-0.6B

GRPOTrainer in the place of CreditTrainer, without `credit`, trains on TRL's own advantages.
"""

import argparse

import torch
from trl import GRPOConfig

from agentgyms.adapters.trl import environment_factory, seeds
from harness.training.trl import CreditTrainer

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("model")
parser.add_argument("--tokens", type=int, default=4096, help="of an episode, at most")
parser.add_argument("--steps", type=int, default=-1)
arguments = parser.parse_args()

trainer = CreditTrainer(
    arguments.model,
    credit="gigpo",
    environment_factory=environment_factory("agentgyms/ALFWorld-v0", split="train"),
    train_dataset=seeds(512),
    args=GRPOConfig(
        max_completion_length=arguments.tokens,
        num_generations=8,
        max_steps=arguments.steps,
        bf16=torch.cuda.is_available(),
        report_to="none",
    ),
)
trainer.train()
