"""Rollouts of the next step are played while the policy learns, in real runs of the corridor."""

import shutil

import pytest
import torch
from small_training import last_checkpoint, lines, run, small

from harness.rollouts import rollout_files
from harness.runs import metrics
from harness.training import setup
from harness.types.errors import ConfigError

AHEAD = [
    "rollout.ahead=1",
    "run.steps=3",
    "run.keep_rollouts=1",
    "checkpoint.every=1",
    "checkpoint.keep=3",
    "eval.every=2",
    "eval.tasks=2",
    "rollout.tasks_per_step=3",
    "rollout.group_size=3",
]
