"""BM25 in Lucene's arithmetic: single precision, and document lengths rounded to one byte."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

K1: Final = np.float32(0.9)
B: Final = np.float32(0.4)

Floats = npt.NDArray[np.float32]

_NUM_EXACT: Final = 24  # shorter lengths are stored exactly


def _decoded_length(byte: int) -> int:
    """Return the length that a byte encodes: exact if small, else with four significant bits."""
    if byte < _NUM_EXACT:
        return byte
    bits, shift = (byte - _NUM_EXACT) & 7, ((byte - _NUM_EXACT) >> 3) - 1
    return _NUM_EXACT + (bits if shift < 0 else (bits | 8) << shift)


LENGTHS: Final = np.array([_decoded_length(byte) for byte in range(256)], np.int64)
"""The document length, in terms, that each byte encodes; ascending."""


def length_byte(length: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return Lucene's one-byte codes of document lengths, rounded down."""
    return np.searchsorted(LENGTHS, length, side="right") - 1


def saturation(
    frequency: npt.NDArray[np.int64], byte: npt.NDArray[np.int64], mean_length: float
) -> Floats:
    """Return tf / (k1 (1 - b + b length / mean length)) of terms in documents.

    `frequency` is tf, `byte` the code of the document's length (`length_byte`), and `mean_length`
    the mean over the documents that have terms.
    """
    one = np.float32(1)  # single precision throughout, as Lucene
    length = LENGTHS[byte].astype(np.float32)
    inverse = one / (K1 * ((one - B) + B * length / np.float32(mean_length)))
    return np.asarray(frequency.astype(np.float32) * inverse, np.float32)


def weight(num_with_term: int, num_documents: int, count: int) -> np.float32:
    """Return the idf of a term times its count in the query."""
    idf = np.log(1 + (num_documents - num_with_term + 0.5) / (num_with_term + 0.5))
    return np.float32(count) * np.float32(idf)


def impact(weight: np.float32, saturation: Floats) -> Floats:
    """Return the score contribution of a term: weight x / (1 + x), computed as Lucene does."""
    return np.asarray(weight - weight / (np.float32(1) + saturation), np.float32)
