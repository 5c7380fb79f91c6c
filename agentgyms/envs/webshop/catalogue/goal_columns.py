"""The data of products that goal lists are made from, as arrays."""

from __future__ import annotations

import math
from array import array
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agentgyms.envs.webshop.product import Product

MAX_COMBINATIONS: Final = 1 << 62
"""Larger numbers of combinations are stored as this one; no list of goals can hold so many."""


class GoalColumns(NamedTuple):
    """Arrays over N products and the H human instructions that have attributes.

    `x_offset` delimits the rows of `x`: row i is `x_offset[i]` to `x_offset[i + 1]`. Attributes are
    numbered in the order in which they first appear, separately for synthetic and human goals.
    """

    # The price, or the lowest and the highest, in dollars; NaN without a second [N, 2].
    pricing: NDArray[np.float64]
    # Number of the category, in the order of first appearance [N].
    category: NDArray[np.int32]
    # Number of combinations of option values, 1 without options [N].
    num_combinations: NDArray[np.int64]
    # Delimits `attribute`, by product; empty for a product without a synthetic instruction or
    # without its attributes, which has no synthetic goals [N + 1].
    attribute_offset: NDArray[np.int64]
    attribute: NDArray[np.int32]  # the attributes of synthetic instructions
    human_offset: NDArray[np.int64]  # delimits the human instructions, by product [N + 1]
    human_number: NDArray[np.int32]  # the index in `product.human` [H]
    # Delimits `human_attribute`, by human instruction [H + 1].
    human_attribute_offset: NDArray[np.int64]
    human_attribute: NDArray[np.int32]  # the attributes of human instructions


class ColumnsBuilder:
    """Collects the columns, product by product."""

    def __init__(self) -> None:
        self._categories: dict[str, int] = {}
        self._attributes: dict[str, int] = {}
        self._human_attributes: dict[str, int] = {}
        self._pricing = array("d")
        self._category, self._num_combinations = array("i"), array("q")
        self._attribute_offset, self._attribute = array("q", [0]), array("i")
        self._human_offset, self._human_number = array("q", [0]), array("i")
        self._human_attribute_offset, self._human_attribute = array("q", [0]), array("i")

    @property
    def categories(self) -> tuple[str, ...]:
        """The categories, in the order of their numbers."""
        return tuple(self._categories)

    def add(self, product: Product) -> None:
        """Append the rows of the next product."""
        low, *rest = product.pricing
        self._pricing.extend((low, rest[0] if rest else math.nan))
        self._category.append(_number(self._categories, product.category))
        combinations = math.prod(len(values) for values in product.options.values())
        self._num_combinations.append(min(combinations, MAX_COMBINATIONS))
        wanted = product.instruction_attributes if product.instruction else ()
        self._attribute.extend(_number(self._attributes, name) for name in wanted)
        self._attribute_offset.append(len(self._attribute))
        for number, instruction in enumerate(product.human):
            if not instruction.attributes:
                continue
            self._human_number.append(number)
            self._human_attribute.extend(
                _number(self._human_attributes, name) for name in instruction.attributes
            )
            self._human_attribute_offset.append(len(self._human_attribute))
        self._human_offset.append(len(self._human_number))

    def finish(self) -> GoalColumns:
        """Return the columns of all products added."""
        return GoalColumns(
            np.array(self._pricing, np.float64).reshape(-1, 2),
            np.array(self._category, np.int32),
            np.array(self._num_combinations, np.int64),
            np.array(self._attribute_offset, np.int64),
            np.array(self._attribute, np.int32),
            np.array(self._human_offset, np.int64),
            np.array(self._human_number, np.int32),
            np.array(self._human_attribute_offset, np.int64),
            np.array(self._human_attribute, np.int32),
        )


def _number(numbers: dict[str, int], name: str) -> int:
    return numbers.setdefault(name, len(numbers))
