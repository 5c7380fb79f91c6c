"""A packed row of tokens that several processes share: Ulysses' sequence parallelism.

Each process passes an equal part of the row's tokens through the model. Around attention they
exchange: each gets all tokens of some heads, and afterwards all heads of its own tokens (Jacobs et
al. 2023, arXiv:2309.14509, section 3.1).

T: tokens of the whole row, padding included. D: width of a head. A: predicted tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from torch import distributed
from torch.nn.functional import pad

from harness.distributed.process_group import ProcessGroup


def heads_obstacle(heads: int, size: int) -> str | None:
    """Return the reason why heads cannot be split over processes, None if they can."""
    if heads % size == 0:
        return None
    return f"it has {heads} attention heads, which cannot be split over {size} processes"


@dataclass(frozen=True, slots=True)
class RowSplit:
    """The processes that share a row, as one of them sees them."""

    rank: int  # number of this process in its team: it has this part of the tokens and of the heads
    size: int
    team: Any

    @classmethod
    def of(cls, processes: ProcessGroup, size: int) -> RowSplit:
        """Return the split over the team of this process; all processes call this."""
        return cls(processes.rank % size, size, processes.team(size))

    def padding(self, tokens: int) -> int:
        """Return how many tokens a row needs at its end to be split."""
        return -tokens % self.size

    def part(self, x: torch.Tensor) -> torch.Tensor:
        """Return this process's part, padded with zeros. [1, tokens, ...] -> [1, T / size, ...]."""
        more = self.padding(x.shape[1])
        whole = pad(x, (*(0, 0) * (x.ndim - 2), 0, more))
        return whole.tensor_split(self.size, dim=1)[self.rank]

    def counts(self, where: torch.Tensor, lengths: Sequence[int]) -> list[int]:
        """Return how many of the predicted tokens each process's part predicts.

        `where` is True at the A predicted tokens, never at a sequence's first, [B, T].
        """
        before = where.roll(-1, dims=1).cpu()
        row = torch.cat([one[:n] for one, n in zip(before, lengths, strict=True)])
        parts = pad(row, (0, self.padding(len(row)))).view(self.size, -1)
        return [int(n) for n in parts.sum(1)]

    def own(self, values: torch.Tensor, counts: Sequence[int]) -> torch.Tensor:
        """Return this process's values, [..., counts[rank]], of those of all, [..., A]."""
        start = sum(counts[: self.rank])
        return values[..., start : start + counts[self.rank]]

    def gather(self, own: torch.Tensor, counts: Sequence[int]) -> torch.Tensor:
        """Return the values of all processes, [..., A], from own ones, [..., counts[rank]].

        All compute the same of them, so the gradient of each process is that of its own values.
        """
        found: torch.Tensor = _Gather.apply(own, self, counts)  # type: ignore[no-untyped-call]
        return found

    def to_heads(self, *given: torch.Tensor) -> list[torch.Tensor]:
        """Return all tokens of a part of the heads, [1, heads / size, T, D].

        Given are queries, keys and values, [1, heads, T / size, D] each. Heads of keys that are
        fewer than the processes go to several of them.
        """
        return [self._to_heads(x) for x in given]

    def _to_heads(self, x: torch.Tensor) -> torch.Tensor:
        times = math.lcm(x.shape[1], self.size) // x.shape[1]
        if times > 1:
            x = x.repeat_interleave(times, dim=1)
        _, heads, tokens, width = x.shape
        parts = x.reshape(self.size, heads // self.size, tokens, width)
        return self._exchange(parts).transpose(0, 1).flatten(1, 2)[None]

    def to_tokens(self, x: torch.Tensor) -> torch.Tensor:
        """Return all heads of some tokens. [1, T, heads / size, D] -> [1, T / size, heads, D]."""
        parts = x[0].reshape(self.size, -1, *x.shape[2:])
        return self._exchange(parts).transpose(0, 1).flatten(1, 2)[None]

    def _exchange(self, parts: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = _Exchange.apply(parts, self.team)  # type: ignore[no-untyped-call]
        return found


def grouped(query: torch.Tensor, key: torch.Tensor) -> Any:
    """Return a stand-in for a layer with these heads. Shapes [1, heads, T, D]."""
    return SimpleNamespace(num_key_value_groups=query.shape[1] // key.shape[1])


class _Exchange(torch.autograd.Function):
    """Sends the n-th part to the n-th process, and returns the parts received."""

    @staticmethod
    def forward(ctx: Any, parts: torch.Tensor, team: Any) -> torch.Tensor:
        ctx.team = team
        parts = parts.contiguous()
        found = torch.empty_like(parts)
        distributed.all_to_all_single(found, parts, group=team)
        return found

    @staticmethod
    def backward(ctx: Any, slope: torch.Tensor) -> Any:
        return _Exchange.apply(slope, ctx.team), None  # type: ignore[no-untyped-call]


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, own: torch.Tensor, split: RowSplit, counts: Sequence[int]
    ) -> torch.Tensor:
        ctx.split, ctx.counts, most = split, counts, max(counts)
        sent = pad(own, (0, most - own.shape[-1])).contiguous()
        found = [torch.empty_like(sent) for _ in counts]
        if most:
            distributed.all_gather(found, sent, group=split.team)
        return torch.cat([one[..., :n] for one, n in zip(found, counts, strict=True)], dim=-1)

    @staticmethod
    def backward(ctx: Any, slope: torch.Tensor) -> Any:
        return ctx.split.own(slope, ctx.counts), None, None
