"""Models in other forms than a folder of transformers, converted once into the cache.

The name of a package's weights (`PACKAGES`) or of a GGUF file becomes the folder of the converted
model. Other names pass.
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
