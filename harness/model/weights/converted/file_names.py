"""Names of files of models, and of what they say of a training."""

from typing import Final

GGUF: Final = ".gguf"
"""Ending of the names of GGUF files."""

TRAINING_RUN: Final = "training_run.json"
"""File of an exported model: `step`, `config` and `provenance` of its training run."""

TRAINING_FIELD: Final = "agentgyms.training_run"
"""Field of a GGUF file's header with the text of that file."""
