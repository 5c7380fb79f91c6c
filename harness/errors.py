"""Errors of the harness; those of environments are in `agentgyms.errors`.

AgentGymsError
└── HarnessError
    ├── ConfigError (ValueError)      a configuration, recipe or hyperparameter cannot be used
    │   └── ContextOverflow           a prompt does not fit into the model's context
    ├── TableError (ValueError)       columns of a turn table are missing or do not fit together
    ├── CheckpointError (OSError)     a checkpoint is missing, damaged or of another run
    ├── ResultError (OSError)         an evaluation's folder is missing, damaged or another one's
    ├── PairingError (ValueError)     evaluations that cannot be compared task by task
    ├── EvaluationStopped (RuntimeError) an evaluation cannot go on; the message says how to resume
    ├── ModelUnavailable (RuntimeError) a model's server failed: no verdict on the agent
    ├── TrainingStopped (RuntimeError) a signal stopped training; the message says how to resume
    └── TrainingError (RuntimeError)  training cannot go on; the message says what to change
        └── NotFinite (ArithmeticError) a number of the update is nan or infinite
"""

from __future__ import annotations

from agentgyms.errors import AgentGymsError


class HarnessError(AgentGymsError):
    """Base of the harness's errors."""


class ConfigError(HarnessError, ValueError):
    """A configuration, recipe or hyperparameter cannot be used."""


class ContextOverflow(ConfigError):
    """A prompt and its longest response do not fit into the model's context."""


class TableError(HarnessError, ValueError):
    """Columns of a turn table are missing or do not fit together."""


class CheckpointError(HarnessError, OSError):
    """A checkpoint is missing, damaged or belongs to another run."""


class ResultError(HarnessError, OSError):
    """The folder of an evaluation is missing, damaged or belongs to another one."""


class PairingError(HarnessError, ValueError):
    """Evaluations are of different environments, splits or versions of them."""


class ModelUnavailable(HarnessError, RuntimeError):
    """A model gave no answer that could be used, retries included. Never score the episode."""


class EvaluationStopped(HarnessError, RuntimeError):
    """An evaluation cannot go on now. What was finished is kept."""


class TrainingError(HarnessError, RuntimeError):
    """Training cannot go on."""


class NotFinite(TrainingError, ArithmeticError):
    """A loss, gradient, advantage or log-probability is nan or infinite."""


class TrainingStopped(HarnessError, RuntimeError):
    """A signal stopped training; it can go on from a checkpoint.

    Attributes:
        exit_code: Of the process, as shells have it: 128 and the number of the signal.
    """

    def __init__(self, message: str, signal: int) -> None:
        """Say how to go on."""
        super().__init__(message)
        self.exit_code = 128 + signal
