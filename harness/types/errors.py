"""Errors of the harness; those of environments are in `agentgyms.core.errors`.

AgentGymsError
└── HarnessError
    ├── ConfigError (ValueError)      a configuration, recipe or hyperparameter cannot be used
    │   └── ContextOverflow           a prompt does not fit into the model's context
    ├── TableError (ValueError)       columns of a turn table are missing or do not fit together
    ├── CheckpointError (OSError)     a checkpoint is missing, damaged or of another run
    ├── ResultError (OSError)         an evaluation's folder is missing, damaged or of another one
    ├── FolderInUse (RuntimeError)    another process writes the folder of a run or an evaluation
    ├── PairingError (ValueError)     evaluations cannot be compared task by task
    ├── EvaluationStopped (RuntimeError) an evaluation cannot go on; the message says how to resume
    ├── ModelUnavailable (RuntimeError) a model gave no usable answer: the episode has no score
    ├── TrainingStopped (RuntimeError) a signal stopped training; the message says how to resume
    └── TrainingError (RuntimeError)  training cannot go on; the message says what to change
        └── NotFinite (ArithmeticError) a number of the update is nan or infinite
"""

from __future__ import annotations

from signal import Signals

from agentgyms.core.errors import AgentGymsError


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


class FolderInUse(HarnessError, RuntimeError):
    """Another process writes the folder of a run or of an evaluation."""


class PairingError(HarnessError, ValueError):
    """Evaluations have different environments, splits or versions, so they cannot be compared."""


class ModelUnavailable(HarnessError, RuntimeError):
    """A model gave no usable answer, even after retries. The episode must not be scored."""


class EvaluationStopped(HarnessError, RuntimeError):
    """An evaluation cannot go on now. Finished episodes are kept."""


class TrainingError(HarnessError, RuntimeError):
    """Training cannot go on."""


class NotFinite(TrainingError, ArithmeticError):
    """A loss, gradient, advantage or log-probability is nan or infinite."""


class TrainingStopped(HarnessError, RuntimeError):
    """A signal stopped training, which can go on; `exit_code` is 128 + the signal's number."""

    def __init__(self, message: str, signal: int) -> None:
        super().__init__(f"stopped by {Signals(signal).name}. {message}")
        self.signal, self.exit_code = signal, 128 + signal

    def with_message(self, message: str) -> TrainingStopped:
        """Return the error with another message."""
        return TrainingStopped(message, self.signal)
