"""What a page shows, as a list of elements: the one description of which text and HTML are made.

A `View` has the elements of a page in the order in which they are read. The text observations
(`pages.py`), the actions that can be taken, and the web site's HTML are all made from it, so that
they cannot disagree. An element is one of:

| element | what it is | how it is clicked |
|---|---|---|
| `Text` | words; `role` says what they are | not at all |
| `Button` | a button, such as `Buy Now` | `click[<key>]`, the label in lower case |
| `Card` | a product among the results | `click[<key>]`, the asin in lower case |
| `OptionGroup` | an option and its values, of which one can be chosen | `click[<key of a value>]` |

The search box is no element: `has_search_box` says whether the page has one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from agentgyms.webshop.product import Product

Page = Literal["index", "search", "item", "sub", "done"]
"""The five pages: the start, the results of a search, a product, more about it, the receipt."""

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
"""What a text is.

`label` goes before the instruction; `count` tells the page and the number of results, `empty` that
there is none; `chosen` lists the chosen options; `body` and `bullet` are the text of a sub page;
`thanks`, `heading`, `field` and `value` are those of the receipt.
"""


class Text(NamedTuple):
    """Words that cannot be clicked."""

    text: str
    role: Role


class Button(NamedTuple):
    """A button; `label` is what is read on it."""

    label: str

    @property
    def key(self) -> str:
        """What `click[...]` names it by."""
        return self.label.lower()


class Card(NamedTuple):
    """A product in the list of results; its asin is a link to its page.

    Attributes:
        asin: Its id, the text of the link.
        title: Its name.
        price: Its price as shown, such as `$34.0`.
        category: One of the five, for the picture.
        visited: Its page was opened since the search began.
    """

    asin: str
    title: str
    price: str
    category: str
    visited: bool

    @property
    def key(self) -> str:
        """What `click[...]` names it by."""
        return self.asin.lower()


class Choice(NamedTuple):
    """One value of an option.

    Attributes:
        option: The option's name.
        value: What is read.
        key: What `click[...]` names it by: the value, or `name: value` where the value alone is
            that of several options or the label of a button. "" if it cannot be clicked.
        marked: It is shown as chosen. The original shows some as chosen that are not, and others
            not that are.
    """

    option: str
    value: str
    key: str
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
    """One page.

    Attributes:
        page: Which of the pages it is.
        instruction: What is to be bought, on every page, whether an element shows it or not.
        query: What was searched for, "" before the first search.
        has_search_box: The original's page has a box to search with; only the start has one there.
        elements: What the page shows, in order.
        product: The product of the pages `item`, `sub` and `done`.
        notice: Why the last action did nothing; shown at the end. "" if it did something.
    """

    page: Page
    instruction: str
    query: str
    has_search_box: bool
    elements: tuple[Element, ...]
    product: Product | None = None
    notice: str = ""

    def clickables(self) -> Iterator[Clickable]:
        """Iterate over what has a key, in page order."""
        for element in self.elements:
            if isinstance(element, OptionGroup):
                yield from (choice for choice in element.choices if choice.key)
            elif not isinstance(element, Text):
                yield element
