"""GGUF files, for llama.cpp and programs built on it, from a folder of transformers.

The header is that of a file of the same model, which says how llama.cpp splits text into tokens.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from harness.model.weights import tensor_files
from harness.model.weights.converted.file_names import TRAINING_FIELD
from harness.model.weights.converted.packages import need_gguf
from harness.model.weights.tensor_files import StoredTensor
from harness.types.errors import ConfigError

_PERMUTED: Final = ("llama",)
"""Architectures whose queries and keys llama.cpp rotates in neighbouring pairs."""

_RAISED: Final = ("gemma2", "gemma3")
"""Architectures whose norms llama.cpp stores with the 1 that transformers adds to them."""

_KNOWN: Final = (*_PERMUTED, "qwen2", "qwen3", *_RAISED)
_NOT_COPIED: Final = (
    "GGUF.",
    "general.architecture",
    "general.file_type",
    "general.quantiz",
    "general.name",
    "general.description",
    TRAINING_FIELD,
    "quantize.",
    "tokenizer.chat_template",
)
"""Beginnings of the names of fields that tell of a file's own weights, name or format."""


class _Tensor(NamedTuple):
    """A tensor to write."""

    name: str  # in GGUF
    key: str  # in the folder's file
    stored: StoredTensor


class Original:
    """The GGUF file of a model before training; `ConfigError` if it cannot be read or written."""

    def __init__(self, file: Path) -> None:
        need_gguf()
        import gguf

        try:
            self._reader = gguf.GGUFReader(file)
        except Exception as e:  # of damaged files, gguf raises errors of any kind
            reason = " ".join(str(e).split())[:100] or type(e).__name__
            raise ConfigError(f"{file.name:.80} is no GGUF file, or damaged: {reason}") from e
        self._file = file
        self._architecture = str(self._field("general.architecture"))
        if self._architecture not in _KNOWN:
            raise ConfigError(
                f"GGUF files of the architecture {self._architecture!r:.30} cannot be written, "
                f"expected {', '.join(_KNOWN)}: export a folder, which llama.cpp's own converter "
                "takes"
            )

    def _field(self, key: str) -> Any:
        field = self._reader.fields.get(key)
        return None if field is None else field.contents()

    def write_trained(
        self,
        folder: Path,
        target: Path,
        *,
        tokenizer: Any,
        precision: str = "float32",
        about: Mapping[str, str] | None = None,
    ) -> None:
        """Write the trained model of a folder, adapters merged, to the GGUF file `target`.

        `tokenizer` is transformers', with the chat template to write. Matrices have the `precision`
        `"float32"` or `"bfloat16"`, vectors are float32. `about` has texts of header fields such as
        `general.name`. Raises `ConfigError` if the folder's model is another one, `OSError` if the
        file cannot be written.
        """
        import gguf

        self._check_tokens(tokenizer)
        tensors = self._tensors(folder)
        writer = gguf.GGUFWriter(target, self._architecture)
        try:
            self._write_header(writer, tokenizer.chat_template, about or {})
            self._write_tensors(writer, tensors, in_halves=precision == "bfloat16")
        finally:
            writer.close()

    def _check_tokens(self, tokenizer: Any) -> None:
        """Refuse other tokens; the file may have further ones, which fill the model's matrix."""
        tokens = self._field("tokenizer.ggml.tokens") or []
        own = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
        for i, token in enumerate(own):
            if tokens[i : i + 1] != [token]:
                raise ConfigError(
                    f"{self._file.name:.80} is not of the model that was trained: its token {i} is "
                    f"{''.join(tokens[i : i + 1]) or 'none'!r:.30}, expected {token!r:.30}"
                )

    def _tensors(self, folder: Path) -> list[_Tensor]:
        """Return a folder's tensors; names and shapes must be those of the file, all of them."""
        import gguf

        kinds = {name: number for number, name in gguf.MODEL_ARCH_NAMES.items()}
        layers = self._field(f"{self._architecture}.block_count")
        names = gguf.get_tensor_name_map(kinds[self._architecture], layers)
        found = [
            _Tensor(names.get_name(key, try_suffixes=(".weight", ".bias")) or key, key, stored)
            for key, stored in tensor_files.read(folder).items()
        ]
        here = {one.name: one.stored.shape for one in found}
        there = {one.name: tuple(int(n) for n in one.shape[::-1]) for one in self._reader.tensors}
        for name in sorted({*here, *there}):
            if here.get(name) != there.get(name):
                raise ConfigError(
                    f"{self._file.name:.80} is not of the model that was trained: {name:.60} has "
                    f"the shape {there.get(name, 'none')} in it, expected {here.get(name, 'none')}"
                )
        return found

    def _write_header(self, writer: Any, template: Any, about: Mapping[str, str]) -> None:
        for key, field in self._reader.fields.items():
            if not key.startswith(_NOT_COPIED):
                kind, *of_parts = field.types
                part = of_parts[-1] if of_parts else None
                writer.add_key_value(key, field.contents(), kind, part)
        for key, text in about.items():
            writer.add_string(key, text)
        if isinstance(template, Mapping):  # several by name
            template = [{"name": name, "template": text} for name, text in template.items()]
        if template:
            writer.add_chat_template(template)

    def _write_tensors(self, writer: Any, tensors: Sequence[_Tensor], *, in_halves: bool) -> None:
        """Write the tensors one after the other, matrices in bfloat16 if `in_halves`."""
        import gguf

        half = gguf.GGMLQuantizationType.BF16
        for name, _, stored in tensors:
            if in_halves and len(stored.shape) > 1:  # gguf takes the shape of its bytes
                shape = gguf.quant_shape_to_byte_shape(stored.shape, half)
                writer.add_tensor_info(name, shape, np.dtype(np.uint8), math.prod(shape), half)
            else:
                size = 4 * math.prod(stored.shape)
                writer.add_tensor_info(name, stored.shape, np.dtype(np.float32), size)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        for name, key, stored in tensors:
            with safe_open(stored.file, "pt") as file:
                weight = self._as_stored(name, file.get_tensor(key).float().numpy())
            is_half = in_halves and weight.ndim > 1
            writer.write_tensor_data(gguf.quantize(weight, half) if is_half else weight)

    def _as_stored(self, name: str, weight: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return a weight as llama.cpp stores it."""
        if self._architecture in _RAISED and name.endswith("norm.weight"):
            return weight + 1
        if self._architecture in _PERMUTED and (".attn_q." in name or ".attn_k." in name):
            count = "head_count" if ".attn_q." in name else "head_count_kv"
            heads = self._field(f"{self._architecture}.attention.{count}")
            halves = weight.reshape(heads, 2, -1, *weight.shape[1:])  # [heads, 2, width / 2, ...]
            return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(weight.shape))
        return weight
