"""Goals, and the parts of their instructions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agentgyms.envs.webshop.goals.price_sampling import NO_BOUND
from agentgyms.envs.webshop.product import Product


@dataclass(frozen=True, slots=True)
class Goal:
    """One goal: the product to buy, and its required attributes, options and price.

    The id is `<asin>/<number of the option combination>`, or `<asin>/human-<number of the
    instruction>`. `query` is the fine category, and the family is the category. `price_upper` is in
    dollars, a million without a bound. `goal_options` are names and values in a synthetic goal,
    values alone in a human one. The original samples with `weight`.
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
        """The values of the required options."""
        options = self.goal_options
        return options if isinstance(options, tuple) else tuple(options.values())


def combination(product: Product, n: int) -> dict[str, str]:
    """Return the n-th combination of the options, sorted by name; the last one varies fastest."""
    chosen = {}
    for name in sorted(product.options, reverse=True):
        n, which = divmod(n, len(product.options[name]))
        chosen[name] = product.options[name][which]
    return dict(reversed(chosen.items()))


def option_text(options: Mapping[str, str]) -> str:
    """Return the part of a synthetic instruction that names its options."""
    text = ", and ".join(f"{name}: {value}" for name, value in options.items())
    return f" with {text}" if text else ""


def bound_text(bound: float) -> str:
    """Return the part of an instruction that names its highest price, in dollars."""
    return "" if bound == NO_BOUND else f", and price lower than {bound:.2f} dollars"
