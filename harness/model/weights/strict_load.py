"""Loads a model as transformers does, and turns its warnings about weights into errors.

transformers makes missing weights at random, drops those that a model does not have, and leaves
tied ones apart. Its own lists tell which names an architecture may lack, have too many or rename.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import torch

from harness.model import hub
from harness.model.weights import tensor_files
from harness.model.weights.tensor_files import RefusedWeightsError, StoredTensor

_MOST: Final = 70
"""Characters of a name that an error repeats."""

_MEDIA: Final = ("image_token", "video_token", "audio_token")
"""A tokenizer's tokens for images and other things that no text has."""


def load(kind: Any, name: str, *, headless: bool = False, **options: Any) -> Any:
    """Return a model of transformers' class `kind` whose weights are all from its files.

    With `headless`, a head's weights may be missing or too many. Raises `RefusedWeightsError` if
    weights are missing, too many, of other sizes, not numbers, or defined twice.
    """
    tensors = tensors_of(name, options.get("revision"))  # of a folder before anything is loaded
    with _reports() as reports:
        try:
            model, info = kind.from_pretrained(
                name, output_loading_info=True, ignore_mismatched_sizes=True, **options
            )
        except RuntimeError as e:
            raise _not_converted(reports, e) from e
    if getattr(model.config, "transformers_weights", None):  # files of other names
        tensors = {}
    elif not tensors:
        tensors = tensors_of(name, options.get("revision"))
    placed = _Placed(model, tensors or {})
    _check(model, info, placed, headless=headless)
    for own, weight in model.named_parameters():
        check_finite(weight, placed.where(own))
    return model


def tensors_of(name: str, revision: str | None = None) -> dict[str, StoredTensor] | None:
    """Return the tensors in the files of a model, or None if they are not all on this machine.

    `revision` is a branch, tag or commit of a hub name; None takes its main branch. Raises
    `RefusedWeightsError` if the files of a folder are missing or contradict each other.
    """
    folder = hub.weights_folder(name, revision)
    if folder is None or not (Path(name).is_dir() or tensor_files.is_complete(folder)):
        return None
    return tensor_files.read(folder)


@contextmanager
def _reports() -> Iterator[list[str]]:
    """Yield a list that gets transformers' tables of bad weights, which are not logged then."""
    found: list[str] = []

    def is_shown(record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if not any(words in text for words in ("LOAD REPORT", "tied weights mapping")):
            return True
        found.append(text)
        return False

    log = logging.getLogger("transformers.modeling_utils")
    log.addFilter(is_shown)
    try:
        yield found
    finally:
        log.removeFilter(is_shown)


def _not_converted(reports: list[str], error: RuntimeError) -> RuntimeError | RefusedWeightsError:
    """Return the error for weights that transformers could not make of several tensors."""
    named = [one[1] for text in reports for one in re.finditer(r"(\S+) *\|.*CONVERSION", text)]
    if not named:
        return error
    return RefusedWeightsError(
        f"{named[0]:.{_MOST}} cannot be made of the tensors in the files, of which some are "
        "missing, twice there or of other sizes: take the config.json of these weights, or copy "
        "the files anew"
    )


def _check(model: Any, info: Mapping[str, Any], placed: _Placed, *, headless: bool) -> None:
    """Refuse a model that transformers loaded with weights that are not its files' alone."""
    if getattr(model, "hf_quantizer", None) is not None:
        raise RefusedWeightsError(
            "its weights are quantised, which can neither be trained nor scored exactly: take the "
            "model in bfloat16"
        )
    missing, unexpected = set(info["missing_keys"]), set(info["unexpected_keys"])
    if headless:
        missing = {name for name in missing if not name.startswith("pooler.")}
    _check_prefix(missing, unexpected)
    if headless:
        unexpected = {name for name in unexpected if _is_of_body(model, name)}
    for name, stored, own in sorted(info["mismatched_keys"]):
        raise RefusedWeightsError(
            f"{placed.where(name)} is {list(stored)}, and config.json makes it {list(own)}: take "
            "the config.json of these weights"
        )
    if missing:
        raise _missing(model, missing, placed)
    if unexpected:
        first = min(unexpected)
        raise RefusedWeightsError(
            f"{placed.where(first)}{_more(unexpected)} is no weight of a {type(model).__name__} as "
            "config.json describes it: take the config.json of these weights, or delete it there"
        )
    placed.check()
    _check_tied(model)


def _more(names: set[str]) -> str:
    return f" (and {len(names) - 1} more)" if len(names) > 1 else ""


def _is_of_body(model: Any, name: str) -> bool:
    """Return whether a weight that a model does not have would belong to one of its parts."""
    parts = {child for child, _ in model.named_children()}
    return name.removeprefix(f"{model.base_model_prefix}.").partition(".")[0] in parts


def _check_prefix(missing: set[str], unexpected: set[str]) -> None:
    """Refuse names of weights behind a wrapper's prefix."""
    for name in sorted(unexpected):
        parts = name.split(".")
        for start in range(1, len(parts)):
            if ".".join(parts[start:]) in missing:
                prefix = ".".join(parts[:start]) + "."
                count = sum(one.startswith(prefix) for one in unexpected)
                raise RefusedWeightsError(
                    f"names of weights ({count}) begin with {prefix!r:.{_MOST}}, "
                    "as a wrapper saves them: save the model without its wrapper, or rename them"
                )


def _missing(model: Any, missing: set[str], placed: _Placed) -> RefusedWeightsError:
    first = min(missing)
    tied = type(model)._tied_weights_keys or {}
    if missing <= set(tied):
        return RefusedWeightsError(
            f"{placed.file} has no {first}, and config.json says that it is not tied: set "
            "tie_word_embeddings to true there if it is the embedding, or add the weight"
        )
    return RefusedWeightsError(
        f"{placed.file} has no {first:.{_MOST}}{_more(missing)}, which would be random: take the "
        "config.json of these weights, or copy the files anew"
    )


class _Placed:
    """The tensors of files by the weights of a model, in transformers' names."""

    def __init__(self, model: Any, tensors: Mapping[str, StoredTensor]) -> None:
        from transformers.conversion_mapping import get_model_conversion_mapping
        from transformers.core_model_loading import (
            WeightConverter,
            WeightRenaming,
            rename_source_key,
        )

        mapping = get_model_conversion_mapping(model)
        renamings = [entry for entry in mapping if isinstance(entry, WeightRenaming)]
        converters = [entry for entry in mapping if isinstance(entry, WeightConverter)]
        own, prefix = model.state_dict(), model.base_model_prefix
        self._model, self._tensors = model, tensors
        self._found: dict[str, list[tuple[str, str]]] = {}
        for key in tensors:
            name, pattern = rename_source_key(key, renamings, converters, prefix, own)
            if name not in own and key in own:
                name, pattern = rename_source_key(key, [], [], prefix, own)
            part = ""  # a part of several that make one weight
            if pattern is not None:
                part = rename_source_key(key, renamings, [])[0].removeprefix(f"{prefix}.")
            self._found.setdefault(name, []).append((part, key))

    @property
    def file(self) -> str:
        return min((one.file.name for one in self._tensors.values()), default="the model's file")

    def where(self, name: str) -> str:
        """Return a weight's name in its file, and the file."""
        keys = [key for _, key in self._found.get(name, ())] or [name]
        tensor = self._tensors.get(keys[0])
        return f"{keys[0]:.{_MOST}}" + ("" if tensor is None else f" in {tensor.file.name}")

    def check(self) -> None:
        """Refuse weights that are defined twice, and types that no weight has."""
        own = self._model.state_dict()
        for name, sources in self._found.items():
            parts = [part for part, _ in sources]
            for number, (part, key) in enumerate(sources):
                earlier = parts[:number]
                if part in earlier or (earlier and "" in (part, *earlier)):
                    first = sources[earlier.index(part) if part in earlier else 0][1]
                    raise tensor_files.twice(first, self._tensors[first], key, self._tensors[key])
                floats = name in own and own[name].is_floating_point()
                if floats and not self._tensors[key].is_float:
                    raise RefusedWeightsError(
                        f"{self.where(name)} is of type {self._tensors[key].kind}, integers or "
                        "quantised numbers: take the model in float32, bfloat16 or float16"
                    )


def _check_tied(model: Any) -> None:
    for name, source in model.get_expanded_tied_weights_keys(all_submodels=True).items():
        if model.get_parameter_or_buffer(name) is not model.get_parameter_or_buffer(source):
            raise RefusedWeightsError(
                f"config.json says that {name} is {source} (tie_word_embeddings), and the files "
                "have two that differ: set tie_word_embeddings to false, or delete the first"
            )


@torch.no_grad()
def check_finite(weight: torch.Tensor, where: str) -> None:
    """Refuse a weight with NaN or infinity; `where` has its name and file. Integers pass."""
    if not weight.numel() or not weight.is_floating_point():
        return
    if not all(torch.isfinite(end) for end in torch.aminmax(weight)):
        raise RefusedWeightsError(
            f"{where} has a number that is NaN or infinite: the training that made it diverged, so "
            "take an earlier checkpoint"
        )


def check_tokens(model: Any, tokenizer: Any) -> None:
    """Raise `RefusedWeightsError` if a token, other than one of images, has no embedding."""
    rows = int(model.get_input_embeddings().weight.shape[0])
    beyond = {name: i for name, i in tokenizer.get_vocab().items() if i >= rows}
    for token in {getattr(tokenizer, kind, None) for kind in _MEDIA} & beyond.keys():
        del beyond[token]
    if beyond:
        last = max(beyond, key=beyond.__getitem__)
        count = max(len(tokenizer), beyond[last] + 1)
        raise RefusedWeightsError(
            f"its tokenizer has {count} ids, the last is {last!r:.40}, and its embedding {rows} "
            "rows: take the tokenizer of these weights, or resize the embedding and save it"
        )
