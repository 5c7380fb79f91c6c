"""The reward of a purchase, and its parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from agentgyms.envs.webshop.goals.fuzzy import normalize_color, normalize_pair, processed, similar

if TYPE_CHECKING:
    from agentgyms.envs.webshop.goals.goal_list import Goal
    from agentgyms.envs.webshop.goals.nouns import NounExtractor
    from agentgyms.envs.webshop.product import Product

SEPARATOR: Final = "›"
NO_NOUNS_SCORE: Final = 0.2


@dataclass(frozen=True, slots=True)
class Purchase:
    """The score of a purchase: the reward, and its parts under the original's names."""

    # `r_type * (num_att_match + num_option_match + r_price) / num_parts`, where the parts are the
    # attributes, the options and the price.
    reward: float
    r_type: float  # how well the type of product matches: 1, 0.5, 0.1 or 0
    r_att: float  # share of the goal's attributes that the product has
    # Share of the goal's options that were chosen, None if the goal has none.
    r_option: float | None
    r_price: bool  # whether the price is within the bound
    w_att: float  # weight of `r_att` in the reward
    w_option: float  # weight of `r_option`
    w_price: float  # weight of `r_price`
    attributes: tuple[bool, ...]  # for each of the goal's attributes, whether the product has it
    options: tuple[bool, ...]  # for each of the goal's options, whether it was chosen
    query_match: bool  # whether the fine categories are equal
    category_match: bool  # whether the paths of categories share two names or more
    title_score: float  # share of the nouns in the goal's title that are in the product's title

    @property
    def num_att_match(self) -> int:
        """Number of the goal's attributes that the product has."""
        return sum(self.attributes)

    @property
    def num_option_match(self) -> int:
        """Number of the goal's options that were chosen."""
        return sum(self.options)

    @property
    def success(self) -> bool:
        """Whether the reward is 1: every part of the goal is met."""
        return self.reward == 1.0


def score_purchase(
    goal: Goal, product: Product, price: float, options: Mapping[str, str], nouns: NounExtractor
) -> Purchase:
    """Return the score of buying `product` for `goal`, which has at least one attribute.

    It differs from the original in one point: the goal's product always has `r_type` 1, whatever
    nouns its title has. The price in dollars does not depend on the options.
    """
    num_attributes, num_options = len(goal.attributes), len(goal.goal_options)
    num_parts = num_attributes + num_options + 1
    attributes = _attributes_met(goal, product)
    options_met = _options_met(goal.goal_options, options.values())
    r_price = price <= goal.price_upper
    query_match = product.query == goal.query
    category_match = len(_names(product.product_category) & _names(goal.product_category)) >= 2
    title_score = _title_score(nouns.nouns(product.title), nouns.nouns(goal.name))
    r_type = _r_type(query_match or category_match, title_score)
    if product.asin == goal.asin:
        r_type = 1.0
    return Purchase(
        reward=(sum(attributes) + sum(options_met) + r_price) / num_parts * r_type,
        r_type=r_type,
        r_att=sum(attributes) / num_attributes,
        r_option=sum(options_met) / num_options if num_options else None,
        r_price=r_price,
        w_att=num_attributes / num_parts,
        w_option=num_options / num_parts,
        w_price=1 / num_parts,
        attributes=attributes,
        options=options_met,
        query_match=query_match,
        category_match=category_match,
        title_score=title_score,
    )


def _attributes_met(goal: Goal, product: Product) -> tuple[bool, ...]:
    """Return which of the goal's attributes match one of the product's or are in its texts."""
    known = [processed(attribute) for attribute in product.attributes]
    texts: tuple[str, ...] | None = None
    met = []
    for wanted in goal.attributes:
        sought = processed(wanted)
        found = any(similar(attribute, sought) for attribute in known)
        if not found:
            texts = texts or _texts(product)
            found = any(wanted in text for text in texts)
        met.append(found)
    return tuple(met)


def _texts(product: Product) -> tuple[str, ...]:
    features = " ".join(product.bullet_points)
    return product.title.lower(), features.lower(), product.description.lower()


def _options_met(
    wanted: Mapping[str, str] | tuple[str, ...], chosen: Iterable[str]
) -> tuple[bool, ...]:
    """Return which wanted options match any chosen value, whichever option it belongs to."""
    values = [processed(normalize_color(value)) for value in chosen]
    if isinstance(wanted, Mapping):
        goals = [normalize_pair(name, value) for name, value in wanted.items()]
    else:
        goals = [normalize_color(value) for value in wanted]
    return tuple(any(similar(value, processed(goal)) for value in values) for goal in goals)


@lru_cache(maxsize=4096)
def _names(product_category: str) -> frozenset[str]:
    return frozenset(name.strip() for name in product_category.split(SEPARATOR))


def _title_score(bought: list[str], wanted: list[str]) -> float:
    return len(set(bought) & set(wanted)) / len(wanted) if wanted else NO_NOUNS_SCORE


def _r_type(same_category: bool, title_score: float) -> float:
    if title_score == 0.0:
        return 0.0
    if title_score < 0.1:
        return 0.1
    return 1.0 if same_category or title_score > 0.2 else 0.5
