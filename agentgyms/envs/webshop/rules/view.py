"""A page as a list of elements in reading order, of which text, actions and HTML are made.

| element | what it is | how it is clicked |
|---|---|---|
| `Text` | text; `role` says what it is | not at all |
| `Button` | a button, such as `Buy Now` | `click[<key>]`, the label in lower case |
| `Card` | a product among the results | `click[<key>]`, the asin in lower case |
| `OptionGroup` | an option and its values, of which one can be chosen | `click[<key of a value>]` |

The search box is no element: `has_search_box` says whether the page has one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from agentgyms.envs.webshop.product import Product

Page = Literal["index", "search", "item", "sub", "done"]
"""The five pages: start, search results, product, sub page of a product, receipt."""

Role = Literal[
    "brand",
    "label",
    "instruction",
    "count",
    "empty",
    "chosen",
    "title",
    "price",
    "rating",
    "body",
    "bullet",
    "thanks",
    "heading",
    "field",
    "value",
]
"""The role of a text.

`label` precedes the instruction; `count` is the page and the number of results, `empty` says that
there are none; `chosen` lists the chosen options; `body` and `bullet` are the text of a sub page;
`thanks`, `heading`, `field` and `value` are those of the receipt.
"""


class Text(NamedTuple):
    """Text that cannot be clicked."""

    text: str
    role: Role


class Button(NamedTuple):
    """A button and its label."""

    label: str

    @property
    def key(self) -> str:
        """The argument of `click[...]`."""
        return self.label.lower()


class Card(NamedTuple):
    """A product among the results; `visited` if its page was opened since the search."""

    asin: str
    title: str
    price: str
    category: str
    visited: bool

    @property
    def key(self) -> str:
        """The argument of `click[...]`."""
        return self.asin.lower()


class Choice(NamedTuple):
    """One value of an option."""

    option: str
    value: str
    # The argument of `click[...]`: the value, or `name: value` where the value alone is that of
    # several options or the label of a button. "" if it cannot be clicked.
    key: str
    # It is shown as chosen. The original shows some as chosen that are not, and others not that
    # are.
    marked: bool


class OptionGroup(NamedTuple):
    """An option of the product and its values; `chosen` is "" until one of them is clicked."""

    name: str
    choices: tuple[Choice, ...]
    chosen: str


Element = Text | Button | Card | OptionGroup
Clickable = Button | Card | Choice


@dataclass(frozen=True, slots=True)
class View:
    """One page; `notice` says why the last action had no effect, "" if it had one."""

    page: Page
    instruction: str
    query: str
    has_search_box: bool
    elements: tuple[Element, ...]
    product: Product | None = None
    notice: str = ""

    def clickables(self) -> Iterator[Clickable]:
        """Yield the elements that can be clicked, in page order."""
        for element in self.elements:
            if isinstance(element, OptionGroup):
                yield from (choice for choice in element.choices if choice.key)
            elif not isinstance(element, Text):
                yield element
