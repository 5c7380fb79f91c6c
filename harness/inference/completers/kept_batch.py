"""A batch whose rows begin with what was read before: only new tokens pass through the model.

The new tokens of all rows are one packed row without padding, in which equal beginnings stand
once. B rows, W columns, N new tokens, P pairs of a new token and a row that has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

import numpy as np
import torch
from transformers.cache_utils import DynamicLayer

from harness.inference.completers.decoding import DecodeBatch, Row
from harness.inference.completers.kept_prefixes import (
    DEFAULT_BYTES,
    KeptPrefixes,
    KeptText,
    Tokens,
    common_length,
)
from harness.model.forward import Network
from harness.model.packed_rows.attention import (
    allow_packed,
    sharing_obstacle,
)
from harness.model.packed_rows.cached_rows import CachedRows, RowQueries
from harness.model.weights.usual_precision import SMALLEST_MIXED
from harness.types.errors import ConfigError
from harness.types.messages import Image

_ROOM: Final = 64
"""Columns that a layer's tensors have beyond those in use."""


@dataclass(slots=True, eq=False)
class Reading:
    """How prompts are read: which tokens are new, and which rows have them."""

    lengths: list[int]
    tokens: list[int] = field(default_factory=list)  # the new tokens
    positions: list[int] = field(default_factory=list)
    last: list[int] = field(default_factory=list)  # number of each row's last token among the new
    queries: list[RowQueries] = field(default_factory=list)
    # Row, number of tokens that it takes from a kept text, and the text.
    kept: list[tuple[int, int, KeptText]] = field(default_factory=list)
    # Rows, columns and new tokens of the pairs, [3, P].
    pairs: torch.Tensor = field(default_factory=lambda: torch.zeros(3, 0, dtype=torch.long))

    @property
    def width(self) -> int:
        """Number of columns: W."""
        return max(self.lengths)

    @classmethod
    def of(cls, prompts: Sequence[Tokens], kept: KeptPrefixes) -> Reading:
        """Return the reading of prompts; in sorted order each shares tokens with the one before."""
        self = cls([len(prompt) for prompt in prompts], last=[0] * len(prompts))
        number = np.full((len(prompts), self.width), -1, np.int64)  # of new tokens, else -1
        before = None
        for row in sorted(range(len(prompts)), key=lambda i: prompts[i]):
            prompt, size = prompts[row], len(prompts[row])
            found, text = kept.find(prompt)
            cached = min(found, size - 1)  # the last token has to pass: its logits are wanted
            shared = 0 if before is None else common_length(prompts[before], prompt)
            if text is not None and cached:
                self.kept.append((row, cached, text))
            if before is not None:
                number[row, cached:shared] = number[before, cached:shared]
            self._add(row, number[row], prompt, max(cached, shared))
            before = row
        rows, index = np.nonzero(number >= 0)
        columns = index + self.width - np.asarray(self.lengths)[rows]  # padding is on the left
        self.pairs = torch.from_numpy(np.stack([rows, columns, number[rows, index]]))
        return self

    def _add(
        self, row: int, number: np.ndarray[Any, np.dtype[np.int64]], prompt: Tokens, begin: int
    ) -> None:
        size, start = len(prompt), len(self.tokens)
        stop = start + size - begin
        number[begin:size] = range(start, stop)
        self.tokens += prompt[begin:]
        self.positions += range(begin, size)
        self.last[row] = int(number[size - 1])
        if stop > start:
            self.queries.append(RowQueries(row, start, stop, size))

    def fill(self, new: torch.Tensor, kept: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the rows' keys or values with room for more columns, [B, KV, W + room, D].

        `new` has those of new tokens, [1, KV, N, D]; `kept` those of the kept texts, [KV, T, D].
        """
        shape = len(self.lengths), new.shape[1], self.width + _ROOM, new.shape[3]
        whole = new.new_zeros(shape)
        for (row, size, _), text in zip(self.kept, kept, strict=True):
            begin = self.width - self.lengths[row]
            whole[row, :, begin : begin + size] = text[:, :size]
        rows, columns, number = self.pairs.to(new.device)
        whole[rows, :, columns] = new[0].transpose(0, 1)[number]
        return whole


class RoomLayer(DynamicLayer):  # type: ignore[no-untyped-call]
    """A layer whose keys and values have room: a further token does not copy all of them.

    `keys` and `values` are the columns in use. If other tensors have replaced them, the next token
    makes room again.
    """

    def __init__(self, index: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.index, self.reading = index, cast("Reading | None", None)
        self._whole: tuple[torch.Tensor, torch.Tensor] | None = None
        self._used: Any = None

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add columns; return those in use."""
        read, self.reading = self.reading, None
        if read is not None:
            texts = [text for *_, text in read.kept]
            self.dtype, self.device, self.is_initialized = key_states.dtype, key_states.device, True
            self._whole = (
                read.fill(key_states, [one.keys[self.index] for one in texts]),
                read.fill(value_states, [one.values[self.index] for one in texts]),
            )
            return self._use(read.width)
        assert self.keys is not None
        assert self.values is not None
        used = self.keys.shape[2]
        stop = used + key_states.shape[2]
        if self._whole is None or self.keys is not self._used or stop > self._whole[0].shape[2]:
            self._whole = _with_room(self.keys, stop), _with_room(self.values, stop)
        for whole, new in zip(self._whole, (key_states, value_states), strict=True):
            whole[:, :, used:stop] = new
        return self._use(stop)

    def _use(self, size: int) -> tuple[torch.Tensor, torch.Tensor]:
        assert self._whole is not None
        self.keys, self.values = (whole[:, :, :size] for whole in self._whole)
        self._used = self.keys
        return self.keys, self.values


def _with_room(states: torch.Tensor, size: int) -> torch.Tensor:
    rows, heads, used, width = states.shape
    whole = states.new_empty(rows, heads, size + _ROOM, width)
    whole[:, :, :used] = states
    return whole


def kept_prefixes(policy: Network, most_bytes: int | None) -> KeptPrefixes | None:
    """Return an empty memory of texts, and prepare the model; None if nothing is to be kept.

    Raises `ConfigError` if `most_bytes` is given and the model's layers cannot share beginnings.
    """
    size = _usual_bytes(policy) if most_bytes is None else most_bytes
    if not size:
        return None
    reason = "its images are no tokens" if policy.vision else sharing_obstacle(policy.model)
    if reason is None:
        allow_packed(policy.model, shares=True)
        return KeptPrefixes(size)
    if most_bytes is None:
        return None
    raise ConfigError(
        f"rollout.cache_gb is not for this {policy.model.config.model_type}: {reason}; set it to 0"
    )


def _usual_bytes(policy: Network) -> int:
    """Return the bytes that are kept where no setting says so; tiny models keep every last bit."""
    if policy.device.type != "cpu":
        return 0
    size = sum(weight.numel() for weight in policy.model.parameters())
    return DEFAULT_BYTES * (policy.precision == "bfloat16" or size >= SMALLEST_MIXED)


class KeptBatch(DecodeBatch[Row]):
    """Rows that are being generated, with the texts that their beginnings are taken from."""

    def __init__(self, policy: Network, kept: KeptPrefixes) -> None:
        """Begin with no rows; `allow_packed` has prepared the model."""
        super().__init__(policy)
        self._kept = kept
        self._cache.layers = [RoomLayer(i) for i in range(len(self._cache.layers))]

    def prefill(
        self,
        rows: Sequence[Row],
        prompts: Sequence[Sequence[int]],
        images: Sequence[Sequence[Image]] = (),
    ) -> torch.Tensor:
        """Fill an empty batch; return the logits of the next tokens. Shape [live rows, V]."""
        assert not any(images)
        device = self.policy.device
        reading = Reading.of([tuple(prompt) for prompt in prompts], self._kept)
        size = torch.tensor(reading.lengths, device=device)
        column = torch.arange(reading.width, device=device)
        self._begin(rows, (column >= reading.width - size[:, None]).long())
        for layer in self._cache.layers:
            layer.reading = reading
        with self.policy.autocast():
            output = self.policy.layers(
                input_ids=torch.tensor([reading.tokens], device=device),
                position_ids=torch.tensor([reading.positions], device=device),
                # transformers passes a mask of four dimensions on, instead of creating one.
                attention_mask=torch.ones(1, 1, 1, 1, dtype=torch.bool, device=device),
                past_key_values=self._cache,
                use_cache=True,
                cached_rows=CachedRows(reading.queries),
            )
            hidden = output.last_hidden_state[0, reading.last]
            logits = self.policy.output_head(hidden.shape[-1])(hidden)
        return cast("torch.Tensor", logits)

    def keep_texts(self, texts: Sequence[Tokens | None]) -> None:
        """Keep the texts that live rows have passed through the model; None keeps none."""
        end = self._mask.shape[1]
        for row, tokens in zip(self._indices, texts, strict=True):
            if tokens is not None:
                begin = end - len(tokens)
                layers = self._cache.layers
                keys = [layer.keys[row, :, begin:].clone() for layer in layers]
                values = [layer.values[row, :, begin:].clone() for layer in layers]
                self._kept.add(tokens, KeptText(keys, values))
