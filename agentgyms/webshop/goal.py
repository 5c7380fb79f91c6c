"""Goals: what to buy, and how instructions say it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agentgyms.webshop.bounds import NO_BOUND
from agentgyms.webshop.product import Product


@dataclass(frozen=True, slots=True)
class Goal:
    """What to buy.

    Attributes:
        task_id: `<asin>/<number of the option combination>`, or `<asin>/human-<number of the
            instruction>`.
        position: Of its product in the catalogue.
        asin: Of its product.
        category: Of its product; the task's family.
        query: The fine category of its product.
        name: The title of its product.
        product_category: Of its product.
        instruction_text: The instruction, with options and bound where it names them.
        attributes: What is asked for.
        price_upper: The highest price, in dollars; a million where the instruction names none.
        goal_options: The options asked for: name and value of each in a synthetic goal, values
            alone in a human one.
        weight: How often the original draws it, compared with others.
    """

    task_id: str
    position: int
    asin: str
    category: str
    query: str
    name: str
    product_category: str
    instruction_text: str
    attributes: tuple[str, ...]
    price_upper: float
    goal_options: Mapping[str, str] | tuple[str, ...]
    weight: float

    @property
    def option_values(self) -> tuple[str, ...]:
        """The values of the options asked for."""
        options = self.goal_options
        return options if isinstance(options, tuple) else tuple(options.values())


def combination(product: Product, n: int) -> dict[str, str]:
    """Return the n-th combination of the options, sorted by name, the last one turning fastest."""
    chosen = {}
    for name in sorted(product.options, reverse=True):
        n, which = divmod(n, len(product.options[name]))
        chosen[name] = product.options[name][which]
    return dict(reversed(chosen.items()))


def option_text(options: Mapping[str, str]) -> str:
    """Return how a synthetic instruction names its options."""
    text = ", and ".join(f"{name}: {value}" for name, value in options.items())
    return f" with {text}" if text else ""


def bound_text(bound: float) -> str:
    """Return how an instruction names its highest price, in dollars."""
    return "" if bound == NO_BOUND else f", and price lower than {bound:.2f} dollars"
