"""Trains and evaluates language agents on agentgyms environments."""

import os

# torch's CPU threads spin while they wait for each other. On a machine that others use too, a long
# spin makes training slower by a multiple; a short one costs some percent on an idle machine.
# OpenMP (libgomp) reads this when torch is imported.
os.environ.setdefault("GOMP_SPINCOUNT", "2000")
