"""A batch of left-padded sequences in generation, with their cache. B rows, T positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, cast

import torch
from torch.nn.functional import pad

from harness.model.forward import Network
from harness.model.vision import Vision
from harness.types.messages import Image

Row = TypeVar("Row")
_Selection = Callable[[torch.Tensor], torch.Tensor]

_COMPACT_BELOW = 0.75
"""The tensors are compacted once the live rows are less than this share of their rows."""


class DecodeBatch(Generic[Row]):
    """Rows that are being generated; rows may join and leave between two tokens.

    A row that left stays in the tensors until a quarter of their rows is unused or others join,
    because every change of shape copies the whole cache. `rows` are the owners of the live rows, in
    order.
    """

    def __init__(self, policy: Network) -> None:
        self.policy = policy
        self.rows: list[Row] = []
        self._indices: list[int] = []  # indices of the live rows in the tensors
        self._cache = _new_cache(policy.model.config)
        self._mask = torch.zeros((0, 0), dtype=torch.long, device=policy.device)  # [B, T]
        self._last = torch.zeros(0, dtype=torch.long, device=policy.device)  # [B]
        # [B], added to positions: an image has fewer positions than tokens
        self._shift = torch.zeros(0, dtype=torch.long, device=policy.device)

    def prefill(
        self,
        rows: Sequence[Row],
        prompts: Sequence[Sequence[int]],
        images: Sequence[Sequence[Image]] = (),
    ) -> torch.Tensor:
        """Fill an empty batch; return the logits of the next tokens. Shape [live rows, V]."""
        width = max(len(prompt) for prompt in prompts)
        filler = self.policy.pad_id
        # Padding is on the left, so that the next token of all rows has the same column. [B, T]
        tokens = torch.tensor([[filler] * (width - len(p)) + list(p) for p in prompts])
        mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
        self._begin(rows, mask.to(self.policy.device))
        tokens = tokens.to(self.policy.device)
        if self.policy.vision:
            return self._prefill_with_images(self.policy.vision, tokens, images)
        position = (self._mask.cumsum(-1) - 1).clamp(min=0)  # [B, T]; padding has any position
        return self._forward(position, input_ids=tokens)

    def _begin(self, rows: Sequence[Row], mask: torch.Tensor) -> None:
        """Take rows into an empty batch; `mask` says which columns have their tokens, [B, T]."""
        self.rows, self._indices, self._mask = list(rows), list(range(len(rows))), mask
        self._last = torch.full((len(rows),), self.policy.pad_id, device=self.policy.device)
        self._shift = torch.zeros_like(self._last)

    def spread(self, rows: Sequence[Row], places: Sequence[int]) -> None:
        """Repeat the rows of a batch that was just filled: row i goes on from row `places[i]`."""
        index = torch.tensor(places, dtype=torch.long, device=self.policy.device)
        self.rows, self._indices = list(rows), list(range(len(rows)))
        self._mask, self._last = self._mask[index], self._last[index]
        self._shift = self._shift[index]
        self._select(lambda x: x[index])

    def _prefill_with_images(
        self, vision: Vision, tokens: torch.Tensor, images: Sequence[Sequence[Image]]
    ) -> torch.Tensor:
        with self.policy.autocast():
            seen = vision.embed(tokens, images, self._mask)
        self._shift = seen.shift
        with self.policy.autocast():
            output = self.policy.layers(
                **seen.inputs(),
                attention_mask=self._mask,
                past_key_values=self._cache,
                use_cache=True,
            )
            hidden = output.last_hidden_state[:, -1]
            logits = self.policy.output_head(hidden.shape[-1])(hidden)
        return cast("torch.Tensor", logits)

    def append(self, tokens: Sequence[int]) -> None:
        """Set the next input token of each live row."""
        self._last[self._index_tensor()] = torch.tensor(tokens, device=self.policy.device)

    def decode(self) -> torch.Tensor:
        """Run the appended tokens; return the logits of the next ones. Shape [live rows, V]."""
        position = self._mask.sum(-1, keepdim=True) + self._shift[:, None]  # [B, 1]
        if self.policy.vision:
            position = position.expand(3, -1, -1)  # text is at one place in time, height and width
        self._mask = pad(self._mask, (0, 1), value=1)
        return self._forward(position, input_ids=self._last[:, None])[self._index_tensor()]

    def keep(self, unfinished: Sequence[bool]) -> None:
        """Remove the live rows with False in `unfinished`."""
        kept = [i for i, stays in enumerate(unfinished) if stays]
        self.rows = [self.rows[i] for i in kept]
        self._indices = [self._indices[i] for i in kept]
        if len(self._indices) < _COMPACT_BELOW * len(self._last):
            self._compact()

    def join(self, other: DecodeBatch[Row]) -> None:
        """Add the rows of another batch."""
        if not other.rows:
            return
        if not self.rows:
            vars(self).update(vars(other))
            return
        self._compact()
        other._compact()
        width = max(self._mask.shape[1], other._mask.shape[1])
        mine, theirs = width - self._mask.shape[1], width - other._mask.shape[1]  # columns to add
        self.rows = [*self.rows, *other.rows]
        self._indices = list(range(len(self.rows)))
        self._last = torch.cat([self._last, other._last])
        self._shift = torch.cat([self._shift, other._shift])
        self._mask = torch.cat([pad(self._mask, (mine, 0)), pad(other._mask, (theirs, 0))])
        for layer, added in zip(self._cache.layers, other._cache.layers, strict=True):
            for (states, k), (more, _) in zip(_states(layer), _states(added), strict=True):
                states[k] = torch.cat([states[k], more[k]])
            if hasattr(layer, "keys"):
                layer.keys = _stack(layer.keys, added.keys, mine, theirs)
                layer.values = _stack(layer.values, added.values, mine, theirs)

    def _forward(self, position: torch.Tensor, **tokens: torch.Tensor) -> torch.Tensor:
        with self.policy.autocast():
            output = self.policy.model(
                **tokens,
                attention_mask=self._mask,
                position_ids=position,
                past_key_values=self._cache,
                use_cache=True,
                logits_to_keep=1,
            )
        logits: torch.Tensor = output.logits[:, -1]
        return logits

    def _index_tensor(self) -> torch.Tensor:
        return torch.tensor(self._indices, dtype=torch.long, device=self.policy.device)

    def _compact(self) -> None:
        """Drop the rows that left, and the columns that are then only padding."""
        if len(self._indices) == len(self._last):
            return
        index = self._index_tensor()
        self._mask, self._last = self._mask[index], self._last[index]
        self._shift = self._shift[index]
        # Columns before the first token of the longest row; `argmax` gives the first 1.
        unused = int(self._mask.argmax(-1).min()) if self.rows else self._mask.shape[1]
        self._mask = self._mask[:, unused:]
        self._indices = list(range(len(self.rows)))
        self._select(lambda x: x[index], lambda x: x[index, :, unused:])

    def _select(self, of_states: _Selection, of_keys: _Selection | None = None) -> None:
        """Replace the cache's states, and keys and values, by parts of them."""
        select = of_keys or of_states
        for layer in self._cache.layers:
            for states, k in _states(layer):
                states[k] = of_states(states[k])
            if hasattr(layer, "keys"):
                layer.keys, layer.values = select(layer.keys), select(layer.values)


def _new_cache(config: Any) -> Any:
    """Return an empty cache; sliding-window layers keep all positions, which the mask restricts."""
    from transformers import DynamicCache
    from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

    cache: Any = DynamicCache(config=config)
    full: Any = DynamicLayer
    cache.layers = [
        full() if type(layer) is DynamicSlidingWindowLayer else layer for layer in cache.layers
    ]
    return cache


def _states(layer: Any) -> list[tuple[dict[Any, torch.Tensor], Any]]:
    """Return where a layer with linear attention has its states, [B, ...]: mappings and their keys.

    The states are numbered in some versions of transformers, and attributes in others (5.9).
    """
    found: list[tuple[dict[Any, torch.Tensor], Any]] = []
    for name in ("conv_states", "recurrent_states"):
        if hasattr(layer, name):
            states = getattr(layer, name)
            numbered = isinstance(states, dict)
            found += [(states, k) for k in states] if numbered else [(vars(layer), name)]
    return found


def _stack(mine: torch.Tensor, added: torch.Tensor, left: int, added_left: int) -> torch.Tensor:
    """Stack caches [B, heads, T, D] of two batches, padded on the left to one length."""
    return torch.cat([pad(mine, (0, 0, left, 0)), pad(added, (0, 0, added_left, 0))])
