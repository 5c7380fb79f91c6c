"""Sequences of a batch as one tree: tokens behind an equal beginning pass through the model once.

A node of the tree is a token after all tokens before it. Equal sequences of tokens have equal
nodes. A causal model whose positions are depths computes for a node what it would compute for that
token in each sequence, and the gradients of a node's uses add up.

B: number of sequences. T: tokens of the longest. N: number of nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

Tokens = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True, eq=False)
class PrefixTree:
    """Nodes of a batch, numbered sequence by sequence. M sequences have new nodes."""

    node: torch.Tensor  # node of each token, 0 at padding. Shape [B, T], integers.
    new: torch.Tensor  # True where a token is the first of its node. N are True. Shape [B, T].
    # Nodes of the M sequences, from root to leaf, one sequence behind the other.
    paths: torch.Tensor
    added: tuple[int, ...]  # number of new nodes of each of the M sequences
    lengths: tuple[int, ...]  # number of nodes of the path of each of the M sequences

    @property
    def num_nodes(self) -> int:
        """Number of nodes: N."""
        return sum(self.added)

    @classmethod
    def of(cls, sequences: Sequence[Tokens], device: torch.device | str = "cpu") -> PrefixTree:
        """Return the tree of sequences, each of which shares nodes with the one before it.

        All equal prefixes are shared if the sequences are sorted. Each has a token at least.
        """
        shape = (len(sequences), max(map(len, sequences)))
        node, new = np.zeros(shape, np.int64), np.zeros(shape, np.bool_)
        paths, added = list[Tokens](), list[int]()
        count, before = 0, sequences[0][:0]
        for i, sequence in enumerate(sequences):
            shared = common_prefix(before, sequence)
            size = len(sequence) - shared  # new nodes
            node[i, :shared] = node[i - 1, :shared]
            node[i, shared : len(sequence)] = np.arange(count, count + size)
            new[i, shared : len(sequence)] = True
            if size:  # a sequence without new nodes needs no queries
                paths.append(node[i, : len(sequence)])
                added.append(size)
            count, before = count + size, sequence
        return cls(
            torch.from_numpy(node).to(device),
            torch.from_numpy(new).to(device),
            torch.from_numpy(np.concatenate(paths)).to(device),
            tuple(added),
            tuple(map(len, paths)),
        )


def common_prefix(one: Tokens, other: Tokens) -> int:
    """Return the number of tokens at the beginning of both sequences."""
    size = min(len(one), len(other))
    differs = one[:size] != other[:size]
    return int(differs.argmax()) if differs.any() else size


def batches_of_trees(sequences: Sequence[Tokens], max_nodes: int) -> Iterator[list[int]]:
    """Yield the indices of each batch of sorted sequences; one over `max_nodes` stands alone."""
    part: list[int] = []
    nodes = 0
    for i in sorted(range(len(sequences)), key=lambda i: sequences[i].tolist()):
        added = len(sequences[i]) - (
            common_prefix(sequences[part[-1]], sequences[i]) if part else 0
        )
        if part and nodes + added > max_nodes:
            yield part
            part, nodes, added = [], 0, len(sequences[i])
        part.append(i)
        nodes += added
    if part:
        yield part
