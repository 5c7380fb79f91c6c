"""Trains and evaluates language agents on agentgyms environments.

training    a training run, from step to step       evaluation  each task once per seed
credit      estimators of advantages                losses      what is minimised
rollouts    agents play episodes                    prompts     templates and parsers
inference   who generates tokens                    model       the policy
config      settings, recipes, methods              preflight   checks before a run starts
reporting   tables, curves, pages                   runs        checkpoints and metrics
"""

import os

# torch's CPU threads spin while they wait for each other. On a machine that others use too, a long
# spin makes training slower by a multiple; a short one costs some percent on an idle machine.
# OpenMP (libgomp) reads this when torch is imported.
os.environ.setdefault("GOMP_SPINCOUNT", "2000")
