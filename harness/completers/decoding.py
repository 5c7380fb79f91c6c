"""A batch of sequences in the middle of generation, with their key-value cache.

Sequences are padded on the left, so that all continue at the right edge. B rows, T positions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import torch
from torch.nn.functional import pad

from harness.images import Image
from harness.policy import Policy
from harness.vision import Vision

Row = TypeVar("Row")

_COMPACT_BELOW = 0.75


class DecodeBatch(Generic[Row]):
    """Rows that are being continued; rows may join and leave between two tokens.

    A row that left keeps its place in the tensors until a quarter of them is unused or others join,
    because every change of their shape copies the whole cache.

    Attributes:
        rows: What each live row belongs to, in order.
    """

    def __init__(self, policy: Policy) -> None:
        """Begin with no rows."""
        from transformers import DynamicCache

        self.policy = policy
        self.rows: list[Row] = []
        self._places: list[int] = []  # of the live rows in the tensors
        self._cache: Any = DynamicCache()
        self._mask = torch.zeros((0, 0), dtype=torch.long, device=policy.device)  # [B, T]
        self._last = torch.zeros(0, dtype=torch.long, device=policy.device)  # [B]
        self._shift = torch.zeros(0, dtype=torch.long, device=policy.device)  # [B], of positions

    def prefill(
        self,
        rows: Sequence[Row],
        prompts: Sequence[Sequence[int]],
        images: Sequence[Sequence[Image]] = (),
    ) -> torch.Tensor:
        """Fill an empty batch with prompts and the images in them; return the logits after them.

        Shape [live rows, V].
        """
        width = max(len(prompt) for prompt in prompts)
        filler = self.policy.pad_id
        tokens = torch.tensor([[filler] * (width - len(p)) + list(p) for p in prompts])
        mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
        self.rows, self._places = list(rows), list(range(len(rows)))
        self._mask = mask.to(self.policy.device)
        self._last = torch.full((len(rows),), filler, device=self.policy.device)
        tokens = tokens.to(self.policy.device)
        if self.policy.vision:
            return self._prefill_with_images(self.policy.vision, tokens, images)
        self._shift = torch.zeros_like(self._last)
        position = (self._mask.cumsum(-1) - 1).clamp(min=0)
        return self._forward(position, input_ids=tokens)

    def _prefill_with_images(
        self, vision: Vision, tokens: torch.Tensor, images: Sequence[Sequence[Image]]
    ) -> torch.Tensor:
        with self.policy.autocast():
            seen = vision.embed(tokens, images, self._mask)
        self._shift = seen.shift
        return self._forward(seen.position, inputs_embeds=seen.embedding)

    def append(self, tokens: Sequence[int]) -> None:
        """Set the token each live row goes on with."""
        self._last[self._index()] = torch.tensor(tokens, device=self.policy.device)

    def decode(self) -> torch.Tensor:
        """Run the tokens set last; return the logits after them. Shape [live rows, V]."""
        position = self._mask.sum(-1, keepdim=True) + self._shift[:, None]
        if self.policy.vision:
            position = position.expand(3, -1, -1)  # text is at one place in time, height and width
        self._mask = pad(self._mask, (0, 1), value=1)
        return self._forward(position, input_ids=self._last[:, None])[self._index()]

    def keep(self, stays: Sequence[bool]) -> None:
        """Let the live rows go that do not stay."""
        kept = [i for i, stay in enumerate(stays) if stay]
        self.rows = [self.rows[i] for i in kept]
        self._places = [self._places[i] for i in kept]
        if len(self._places) < _COMPACT_BELOW * len(self._last):
            self._compact()

    def join(self, other: DecodeBatch[Row]) -> None:
        """Take over the rows of another batch."""
        if not other.rows:
            return
        if not self.rows:
            vars(self).update(vars(other))
            return
        self._compact()
        other._compact()
        width = max(self._mask.shape[1], other._mask.shape[1])
        mine, theirs = width - self._mask.shape[1], width - other._mask.shape[1]
        self.rows = [*self.rows, *other.rows]
        self._places = list(range(len(self.rows)))
        self._last = torch.cat([self._last, other._last])
        self._shift = torch.cat([self._shift, other._shift])
        self._mask = torch.cat([pad(self._mask, (mine, 0)), pad(other._mask, (theirs, 0))])
        for own, added in zip(self._cache.layers, other._cache.layers, strict=True):
            own.keys = _stack(own.keys, added.keys, mine, theirs)
            own.values = _stack(own.values, added.values, mine, theirs)

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

    def _index(self) -> torch.Tensor:
        return torch.tensor(self._places, dtype=torch.long, device=self.policy.device)

    def _compact(self) -> None:
        """Drop the rows that left, and the columns that are then only padding."""
        if len(self._places) == len(self._last):
            return
        index = self._index()
        self._mask, self._last = self._mask[index], self._last[index]
        self._shift = self._shift[index]
        unused = int(self._mask.argmax(-1).min()) if self.rows else self._mask.shape[1]
        self._mask = self._mask[:, unused:]
        self._places = list(range(len(self.rows)))
        select: Callable[[torch.Tensor], torch.Tensor] = lambda x: x[index, :, unused:]  # noqa: E731
        for layer in self._cache.layers:
            layer.keys, layer.values = select(layer.keys), select(layer.values)


def _stack(mine: torch.Tensor, added: torch.Tensor, left: int, added_left: int) -> torch.Tensor:
    """Stack caches [B, heads, T, D] of two batches, padded on the left to one length."""
    return torch.cat([pad(mine, (0, 0, left, 0)), pad(added, (0, 0, added_left, 0))])
