"""Products as rows of a file: one line of compact JSON each."""

from __future__ import annotations

import json
from typing import Final

from agentgyms.envs.webshop.product import HumanInstruction, Product

_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def encode(product: Product) -> bytes:
    """Return a product's row, with a newline; lone surrogates, invalid in UTF-8, become U+FFFD."""
    row = _ENCODER.encode(
        [
            product.asin,
            product.title,
            product.description,
            product.bullet_points,
            product.category,
            product.query,
            product.product_category,
            product.attributes,
            dict(product.options),
            product.pricing,
            product.image,
            product.instruction,
            product.instruction_attributes,
            product.human,
        ]
    )
    try:
        return row.encode() + b"\n"
    except UnicodeEncodeError:
        whole = row.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return whole.encode() + b"\n"


def decode(row: bytes) -> Product:
    """Return the product of a row that `encode` returned."""
    (
        asin,
        title,
        description,
        bullet_points,
        category,
        query,
        product_category,
        attributes,
        options,
        pricing,
        image,
        instruction,
        instruction_attributes,
        human,
    ) = json.loads(row)
    return Product(
        asin,
        title,
        description,
        tuple(bullet_points),
        category,
        query,
        product_category,
        tuple(attributes),
        {name: tuple(values) for name, values in options.items()},
        tuple(pricing),
        image,
        instruction,
        tuple(instruction_attributes),
        tuple(
            HumanInstruction(text, tuple(wanted), tuple(chosen)) for text, wanted, chosen in human
        ),
    )
