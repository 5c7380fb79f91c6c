"""Models in other forms than a folder of transformers, converted once into the cache.

Takes a name: of weights that a Python package carries (`PACKAGES`), or of a GGUF file. Returns the
folder of the converted model, which everything loads like any other one. Other names pass.
`packages` finds the files of packages, `gguf_file` converts GGUF, `cache` keeps the results;
`gguf_writer` writes GGUF.
"""

from harness.model.weights.converted.file_names import GGUF, TRAINING_FIELD, TRAINING_RUN
from harness.model.weights.converted.names import (
    NAMES,
    base_again,
    check_source,
    folder_of,
    is_converted,
)

__all__ = [
    "GGUF",
    "NAMES",
    "TRAINING_FIELD",
    "TRAINING_RUN",
    "base_again",
    "check_source",
    "folder_of",
    "is_converted",
]
