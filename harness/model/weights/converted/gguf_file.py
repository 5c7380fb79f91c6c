"""GGUF files, llama.cpp's form of models, converted by transformers to float32.

What transformers would leave out is refused: factors of positions, weights that it does not place.
"""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from harness.model.weights.converted.file_names import TRAINING_FIELD, TRAINING_RUN
from harness.model.weights.converted.packages import need_gguf
from harness.types.errors import ConfigError

_MOST: Final = 150
"""Characters of another library's error that a message repeats."""

_NO_SCALING: Final = ("", "none")
_READ_SCALING: Final = ("gpt-oss",)
"""Architectures of which transformers reads the scaling of positions."""


def convert(source: Path, folder: Path) -> None:
    """Write the model of a GGUF file, with its tokenizer and chat template, to a folder.

    If the file says how the model was trained, the folder does, too. Raises `ConfigError` if the
    package gguf is missing, the file is none or damaged, or transformers cannot read its
    architecture, quantisation or tokenizer.
    """
    need_gguf()
    trained = _check(source)
    from transformers import AutoModelForCausalLM, AutoTokenizer

    kind: Any = AutoModelForCausalLM
    try:
        with _quiet():
            tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
            model, info = kind.from_pretrained(
                source.parent,
                gguf_file=source.name,
                dtype=torch.float32,
                output_loading_info=True,
                ignore_mismatched_sizes=True,
            )
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as e:  # of other architectures, transformers raises errors of any kind
        raise _refused("transformers cannot read it", e) from e
    _check_placed(info)
    # The weights are plain numbers now; with these, transformers would refuse to save them.
    vars(model.config).pop("quantization_config", None)  # of some versions of transformers
    model.hf_quantizer, model.is_quantized = None, False
    with _quiet():
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    if trained:
        (folder / TRAINING_RUN).write_text(trained, encoding="utf-8")


def _check(source: Path) -> str:
    """Refuse a file that would be read wrongly; return its record of training, "" if none."""
    import gguf

    try:
        reader = gguf.GGUFReader(source)
    except Exception as e:  # of damaged files, gguf raises errors of any kind
        raise _refused("it is no GGUF file, or a damaged one", e) from e
    architecture = _text(reader, "general.architecture")
    _check_kinds(reader)
    if not any(name.startswith("tokenizer.ggml.") for name in reader.fields):
        raise ConfigError("it has no tokenizer (tokenizer.ggml...): take a file of a whole model")
    scaling = _text(reader, f"{architecture}.rope.scaling.type")
    factors = any(tensor.name.startswith("rope_f") for tensor in reader.tensors)
    if architecture not in _READ_SCALING and (scaling not in _NO_SCALING or factors):
        what = "rope_freqs" if factors else f"rope.scaling.type = {scaling!r}"
        raise ConfigError(
            f"its positions are scaled ({what:.60}), which transformers does not read from GGUF: "
            "take the model's safetensors files"
        )
    return _text(reader, TRAINING_FIELD)


def _check_kinds(reader: Any) -> None:
    """Refuse a quantisation that the package gguf cannot turn into numbers."""
    import gguf

    first = {tensor.tensor_type: tensor.name for tensor in reader.tensors}
    for kind, name in first.items():
        _, num_bytes = gguf.GGML_QUANT_SIZES[kind]
        try:
            gguf.dequantize(np.zeros((1, num_bytes), np.uint8), kind)
        except NotImplementedError:
            raise ConfigError(
                f"{name:.60} is quantised as {kind.name}, which the package gguf "
                f"{version('gguf')} cannot turn into numbers: take a file of another kind, such as "
                "F16, or a newer gguf"
            ) from None


def _text(reader: Any, key: str) -> str:
    """Return a text of the file's header; "" if it has none of this name."""
    import gguf

    field = reader.fields.get(key)
    if field is None or field.types != [gguf.GGUFValueType.STRING]:
        return ""
    return bytes(field.parts[field.data[0]]).decode(errors="replace")


def _check_placed(info: Any) -> None:
    """Refuse a model with weights that were not in the file, or are of other sizes."""
    wrong = sorted({*info["missing_keys"], *(name for name, *_ in info["mismatched_keys"])})
    if wrong:
        raise ConfigError(
            f"it has no {wrong[0]:.70} of the right size ({len(wrong)} such weights), which would "
            "be random: take another file"
        )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers' bars and tables off the screen: errors here say what they do."""
    from transformers.utils import logging as their_logging

    before = their_logging.get_verbosity()
    their_logging.set_verbosity(logging.CRITICAL)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        their_logging.set_verbosity(before)


def _refused(what: str, error: Exception) -> ConfigError:
    reason = " ".join(str(error).split())[:_MOST] or type(error).__name__
    return ConfigError(f"{what}: {reason}")
