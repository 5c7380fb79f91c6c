"""Semantic scorers: similarity of two step texts by a frozen model."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Final

import numpy as np
import torch
from safetensors import SafetensorError

from agentgyms.data.progress_bar import ProgressBar
from harness.credit.similarity import SCORERS, Cached, Scorer
from harness.model import hub
from harness.model.weights import converted, strict_load
from harness.model.weights.tensor_files import RefusedWeightsError
from harness.types.arrays import Floats
from harness.types.errors import ConfigError

DEFAULT_MODELS: Final = {
    "cross-encoder": "BAAI/bge-reranker-v2-m3",
    "embedding": "sentence-transformers/all-MiniLM-L6-v2",
}
"""SCPO's scorer (Table 4), and the encoder of its appendix C.2; SALT names no model."""

BATCH: Final = 64
MAX_LENGTH: Final = 512
SHOWN_FROM: Final = 20
"""Number of batches from which a progress bar is shown."""


class CrossEncoder(Scorer):
    """A frozen cross-encoder: it reads both texts together and returns their similarity.

    Any sequence classification model: the sigmoid of a single logit, or the softmax probability of
    the second of two. Half precision on a GPU, as in SCPO's Table 4.
    """

    def __init__(self, name: str, device: str | None = None, max_length: int = MAX_LENGTH) -> None:
        """Load the model of a hub name or folder; without `device` on a GPU, if there is one.

        Both texts together have at most `max_length` tokens; the longer one is truncated. Raises
        `ConfigError` if the model cannot be loaded or does not score pairs.
        """
        import transformers

        self._device = _device(device)
        self._tokenizer, config = _opened(name, transformers)
        self._max_length = _limit(max_length, self._tokenizer, config)
        outputs = config.num_labels
        trained = any("SequenceClassification" in one for one in config.architectures or ())
        if not trained or outputs not in (1, 2):
            raise ConfigError(
                f"{name} does not score pairs of texts: expected a sequence classification model "
                "with one logit or two, such as a reranker"
            )
        loader = transformers.AutoModelForSequenceClassification
        self._model = _frozen(name, loader, self._device, self._tokenizer)
        self._model.config.pad_token_id = self._tokenizer.pad_token_id

    def pairs(self, texts_a: Sequence[str], texts_b: Sequence[str]) -> Floats:
        """Return the similarity of each text with its counterpart. Shape [n]."""
        both = list(zip(texts_a, texts_b, strict=True))
        return _in_batches(both, lambda pair: len(pair[0]) + len(pair[1]), self._judged)

    @torch.inference_mode()
    def _judged(self, pairs: Sequence[tuple[str, str]]) -> Floats:
        inputs = self._tokenizer(
            [a for a, _ in pairs],
            [b for _, b in pairs],
            padding=True,
            truncation=True,
            max_length=self._max_length,
            return_tensors="pt",
        )
        logit = self._model(**inputs.to(self._device)).logits.float()  # [n, 1 or 2]
        one = logit.shape[1] == 1
        probability = logit[:, 0].sigmoid() if one else logit.softmax(dim=1)[:, 1]
        scores: Floats = probability.double().cpu().numpy()
        return scores


class Embedding(Scorer):
    """A frozen sentence encoder: cosine of the two texts' embeddings, 0 if it is negative.

    Embeddings are normalised means of the last layer over tokens, cached for the last used texts.
    Other values are not rescaled, so that thresholds on cosines keep their meaning.
    """

    def __init__(
        self,
        name: str,
        device: str | None = None,
        max_length: int = MAX_LENGTH,
        size: int = 50_000,
    ) -> None:
        """Load a hub name's or folder's model, or raise `ConfigError`; cache `size` embeddings."""
        import transformers

        self._device = _device(device)
        self._tokenizer, config = _opened(name, transformers)
        self._max_length = _limit(max_length, self._tokenizer, config)
        loader = transformers.AutoModel
        self._model = _frozen(name, loader, self._device, self._tokenizer, headless=True)
        self._size = size
        self._known: OrderedDict[str, Floats] = OrderedDict()

    def pairs(self, texts_a: Sequence[str], texts_b: Sequence[str]) -> Floats:
        """Return the cosine of each text with its counterpart. Shape [n]."""
        both = self._vectors([*texts_a, *texts_b])
        a, b = both[: len(texts_a)], both[len(texts_a) :]
        cosine: Floats = (a * b).sum(axis=1)
        return cosine.clip(0, 1)

    def __call__(self, texts_a: Sequence[str], texts_b: Sequence[str]) -> Floats:
        """Return the cosine of all pairs. Shape [m, l]."""
        both = self._vectors([*texts_a, *texts_b])
        cosine: Floats = both[: len(texts_a)] @ both[len(texts_a) :].T
        return cosine.clip(0, 1)

    def _vectors(self, texts: Sequence[str]) -> Floats:
        """Embeddings of texts. Shape [n, width]."""
        if not len(texts):
            return np.zeros((0, 1))
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        found = {text: self._known[text] for text in set(texts) - set(new)}
        for text in found:
            self._known.move_to_end(text)
        if new:
            fresh = dict(zip(new, _in_batches(new, len, self._embedded), strict=True))
            found |= fresh
            self._known |= fresh
            while len(self._known) > self._size:
                self._known.popitem(last=False)
        return np.stack([found[text] for text in texts])

    @torch.inference_mode()
    def _embedded(self, texts: Sequence[str]) -> Floats:
        inputs = self._tokenizer(
            list(texts),
            padding=True,
            truncation=True,
            max_length=self._max_length,
            return_tensors="pt",
        ).to(self._device)
        hidden = self._model(**inputs).last_hidden_state.double()  # [n, T, width]
        mask = inputs["attention_mask"][:, :, None]
        mean = (hidden * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)
        vectors: Floats = torch.nn.functional.normalize(mean, dim=1).cpu().numpy()
        return vectors


def open_scorer(spec: str, device: str | None = None) -> Scorer:
    """Return a scorer: `exact`, `lexical`, `cross-encoder[:MODEL]` or `embedding[:MODEL]`.

    `MODEL` is a hub name or folder; without it the scorer has the model of `DEFAULT_MODELS`. Raises
    `ConfigError` if there is no such scorer or its model cannot be loaded.
    """
    kind, _, name = spec.partition(":")
    if kind in SCORERS and not name:
        return SCORERS[kind]()
    if kind not in DEFAULT_MODELS or spec.endswith(":"):
        raise ConfigError(
            f"unknown scorer {spec!r}: expected exact, lexical, cross-encoder[:NAME_OR_FOLDER] or "
            "embedding[:NAME_OR_FOLDER]"
        )
    name = name or DEFAULT_MODELS[kind]
    return (
        Cached(CrossEncoder(name, device)) if kind == "cross-encoder" else Embedding(name, device)
    )


def resolve(settings: Mapping[str, Any], device: str | None = None) -> dict[str, Any]:
    """Return an estimator's settings with the names of models replaced by scorers on `device`.

    It replaces `scorer` and `match`, also in a `base`, unless they need no model. Equal names give
    the same scorer. Raises the errors of `open_scorer`.
    """
    return _resolved(settings, device, {})


def _resolved(
    settings: Mapping[str, Any], device: str | None, opened: dict[str, Scorer]
) -> dict[str, Any]:
    result = dict(settings)
    for key in ("scorer", "match"):
        spec = result.get(key)
        if isinstance(spec, str) and spec not in SCORERS:
            if spec not in opened:
                opened[spec] = open_scorer(spec, device)
            result[key] = opened[spec]
    if isinstance(result.get("base"), Mapping):
        result["base"] = _resolved(result["base"], device, opened)
    return result


def _device(device: str | None) -> str:
    return device or ("cuda" if torch.cuda.is_available() else "cpu")


def _opened(name: str, transformers: Any) -> tuple[Any, Any]:
    """Return the tokenizer of a model, with a padding token, and its configuration."""
    name = converted.folder_of(name, "the scorer's model")
    hub.check_files(Path(name))
    try:
        source = {"trust_remote_code": False, **hub.load_options(name)}
        tokenizer = transformers.AutoTokenizer.from_pretrained(name, **source)
        config = transformers.AutoConfig.from_pretrained(name, **source)
    except (OSError, ValueError) as e:
        raise _unloadable(name, e) from e
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer, config


def _limit(max_length: int, tokenizer: Any, config: Any) -> int:
    """Return the most tokens that the model takes; RoBERTa's positions start at 2."""
    positions = getattr(config, "max_position_embeddings", None) or max_length + 2
    return int(min(max_length, tokenizer.model_max_length, positions - 2))


def _frozen(name: str, loader: Any, device: str, tokenizer: Any, *, headless: bool = False) -> Any:
    dtype = torch.float16 if device.startswith("cuda") else torch.float32
    name = converted.folder_of(name, "the scorer's model")
    try:
        source = {"trust_remote_code": False, **hub.load_options(name)}
        model = strict_load.load(loader, name, dtype=dtype, headless=headless, **source)
        strict_load.check_tokens(model, tokenizer)
    except RefusedWeightsError as e:
        raise ConfigError(f"the scorer's model {name:.80} cannot be loaded: {e}") from e
    except (OSError, ValueError, SafetensorError, UnpicklingError) as e:
        raise _unloadable(name, e) from e
    return model.to(device).eval().requires_grad_(False)


def _unloadable(name: str, error: Exception) -> ConfigError:
    return ConfigError(
        f"the scorer's model {name:.80} cannot be loaded: give a folder that holds it, as in "
        "cross-encoder:FOLDER, or take the scorers exact or lexical, which need no model "
        f"({' '.join(str(error).split()):.70})"
    )


def _in_batches(
    items: Sequence[Any], length: Callable[[Any], int], score: Callable[[Sequence[Any]], Floats]
) -> Floats:
    """Score items in batches of similar lengths, the longest first. Shape [n, ...]."""
    if not len(items):
        return np.zeros(0)
    order = sorted(range(len(items)), key=lambda i: -length(items[i]))
    starts = range(0, len(order), BATCH)
    hidden = len(starts) < SHOWN_FROM
    bar = ProgressBar(starts, desc="semantic scores", unit="batch", leave=False, disable=hidden)
    scored = np.concatenate([score([items[i] for i in order[at : at + BATCH]]) for at in bar])
    result = np.empty_like(scored)
    result[order] = scored
    return result
