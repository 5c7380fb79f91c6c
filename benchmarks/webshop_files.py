"""Writes made-up products in the format of WebShop's official files, as many as one wants.

Words are drawn with Zipf's frequencies; the most frequent ones are English stop words. Titles,
descriptions, bullet points, options, attributes and instructions are as long and as frequent as in
the official first 1,000 products.
"""

from __future__ import annotations

import json
import random
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

NUM_WORDS = 500_000
WORDS = {
    "stop": "the and for with a of to is in your it you this or are on be as that not at by will "
    "if an no but into such their then there these they was",
    "color": "black white blue red green grey brown pink purple navy silver gold beige orange",
    "size": "x-small small medium large x-large xx-large 2 4 6 8 10 12 one-size",
    "onset": "b br c ch d dr f fl g gr h j k l m n p pl qu r s sh st t tr v w",
    "vowel": "a e i o u ai ea ou",
    "end": "- n r s t l ck nd",
    "tail": "- - - s ed ing er able ation ness",
}
STOP_WORDS = WORDS["stop"].split()
CATEGORIES = ("beauty", "electronics", "fashion", "garden", "grocery")


def write(folder: Path, num_products: int, suffix: str = "", seed: int = 0) -> None:
    """Write products, attributes and human instructions (one per hundred products) to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    maker = Maker(seed)
    with (
        (folder / f"items_shuffle{suffix}.json").open("w", encoding="utf-8") as items,
        (folder / f"items_ins_v2{suffix}.json").open("w", encoding="utf-8") as about,
        (folder / f"items_human_ins{suffix}.json").open("w", encoding="utf-8") as people,
    ):
        for file, mark in ((items, "["), (about, "{"), (people, "{")):
            file.write(mark)
        for number in range(num_products):
            item, known, written = maker.product(number)
            comma = ", " if number else ""
            items.write(f"{comma}{json.dumps(item, ensure_ascii=False)}")
            about.write(f'{comma}"{item["asin"]}": {json.dumps(known)}')
            if number % 100 == 0:
                people.write(f'{comma}"{item["asin"]}": {json.dumps([written])}')
        for file, mark in ((items, "]"), (about, "}"), (people, "}")):
            file.write(mark)


class Maker:
    """Makes products from one seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.draws = np.random.default_rng(seed)
        invented = islice(self.invented(), NUM_WORDS - len(STOP_WORDS))
        # Frequent words are short ones.
        self.words = [*STOP_WORDS, *sorted(invented, key=len)]
        self.waiting: list[str] = []
        # What the search does not read may come from a stock.
        self.stock = [self.sentence(self.rng.randint(4, 35)) for _ in range(2_000)]
        self.kinds = [
            (CATEGORIES[number % 5], " ".join(self.rare(2)), " › ".join(self.rare(4)))
            for number in range(300)
        ]

    def invented(self) -> Any:
        """Yield words that look like words, and numbers among them."""
        onsets, vowels, ends, tails = (
            [part.strip("-") for part in WORDS[name].split()]
            for name in ("onset", "vowel", "end", "tail")
        )
        seen = set(STOP_WORDS)
        while True:
            syllables = self.rng.randint(1, 3)
            word = "".join(
                self.rng.choice(onsets) + self.rng.choice(vowels) + self.rng.choice(ends)
                for _ in range(syllables)
            ) + self.rng.choice(tails)
            if self.rng.random() < 0.03:
                word = str(self.rng.randint(1, 10 ** self.rng.randint(1, 6)))
            if word not in seen:
                seen.add(word)
                yield word

    def take(self, count: int) -> list[str]:
        """Return words, word number r with a probability about 1 / r."""
        while len(self.waiting) < count:
            rank = np.exp(self.draws.random(1 << 18) * np.log(NUM_WORDS)).astype(np.int64) - 1
            self.waiting += map(self.words.__getitem__, rank.tolist())
        taken = self.waiting[-count:] if count else []
        del self.waiting[len(self.waiting) - count :]
        return taken

    def rare(self, count: int) -> list[str]:
        """Return words that are no stop words."""
        return self.rng.choices(self.words[len(STOP_WORDS) : 20_000], k=count)

    def sentence(self, length: int) -> str:
        """Return words as they come."""
        return " ".join(self.take(length)).capitalize()

    def product(self, number: int) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """Return an item, its attributes, and what a person could have written about it."""
        rng = self.rng
        category, query, path = self.kinds[int(300 * rng.random() ** 2)]
        wanted = [" ".join(pair) for pair in zip(*[iter(self.rare(8))] * 2, strict=False)]
        wanted = wanted[: rng.choice([0, 1, 1, 2, 2, 3, 4])]
        bullets = [self.sentence(rng.randint(4, 38))]
        bullets += rng.choices(self.stock, k=rng.choice([0, 3, 4, 4, 4, 4, 6]))
        length = 0 if rng.random() < 0.33 else int(rng.lognormvariate(4.5, 0.7))
        options = self.options()
        item = {
            "name": " ".join([self.sentence(rng.randint(6, 30)), query, *wanted[:1]]),
            "full_description": self.sentence(length),
            "pricing": self.pricing(),
            "images": [f"https://example.org/images/I/{rng.getrandbits(50):x}.jpg"] * 3,
            "product_category": f"{category} › {path}",
            "average_rating": "",
            "small_description": bullets,
            "product_information": dict(zip(bullets, self.stock[:4], strict=False)),
            "total_reviews": "",
            "customization_options": options,
            "asin": f"B{number:09}",
            "category": category,
            "query": query.title(),
            "page": 1,
        }
        known: dict[str, Any] = {"attributes": wanted}
        if wanted and rng.random() < 0.5:
            known["instruction"] = f"Find me {', '.join(wanted)} {query}"
            known["instruction_attributes"] = wanted
        written = {
            "asin": item["asin"],
            "instruction": f"i am looking for {query} that is {' and '.join(wanted)}.",
            "instruction_attributes": wanted,
            "instruction_options": [],
        }
        return item, known, written

    def options(self) -> Any:
        """Return no option, or a colour, a size or both."""
        rng = self.rng
        names = rng.choices([(), ("Color",), ("Size",), ("Color", "Size")], (52, 12, 13, 23))[0]
        if not names:
            return ""
        values = {"Color": WORDS["color"].split(), "Size": WORDS["size"].split()}
        return {
            name: [
                {"value": value, "image": f"https://example.org/{value}.jpg", "price": ""}
                for value in rng.sample(values[name], rng.choice([2, 2, 3, 3, 4, 5, 6, 7, 10]))
            ]
            for name in names
        }

    def pricing(self) -> str:
        """Return no price, one, or two."""
        low = self.rng.lognormvariate(3.2, 0.9)
        kind = self.rng.random()
        if kind < 0.12:
            return ""
        return f"${low:.2f}" + (f" - ${low * 1.7:.2f}" if kind > 0.8 else "")
