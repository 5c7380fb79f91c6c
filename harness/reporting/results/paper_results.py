"""The papers' reported numbers with their sources, from `reported.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

FILE: Final = Path(__file__).with_name("reported.toml")
MAIN: Final = "main"
DETAIL: Final = "detail"
_DATE: Final = re.compile(r"-\d{4}-\d\d-\d\d$")
_NUMBER: Final = re.compile(r"(\d+(?:\.\d+)?)(?:±(\d+(?:\.\d+)?))?")


@dataclass(frozen=True, slots=True)
class Number:
    """A number as printed, in percent or, for goals, from 0 to 10."""

    mean: float
    std: float | None  # its standard deviation over seeds; None if the paper gives none
    decimals: int


@dataclass(frozen=True, slots=True)
class Reported:
    """The numbers of one row of a paper's table for one environment and split."""

    source: str
    kind: str  # `"main"`, `"ablation"` or `"detail"`
    model: str
    type: str  # `"Prompting"`, `"SFT"` or `"RL"`
    method: str
    environment: str
    split: str
    partner: str  # the partner as results name it: `"self"` or a model; "" if there is none
    judge: str  # the judge as results name it; "" for the environment's own rules
    # numbers by heading, in the paper's order; headings without a number are left out
    numbers: Mapping[str, Number]
    note: str  # how the paper counted


@cache
def load() -> tuple[Reported, ...]:
    """Return all rows that have a number; a damaged file is a `ValueError`."""
    tables = tomllib.loads(FILE.read_text(encoding="utf-8"))["table"]
    return tuple(row for table in tables for row in _rows(table) if row.numbers)


def _rows(table: Mapping[str, Any]) -> Iterator[Reported]:
    source = f"{table['paper']}, Table {table['number']}"
    for model, kind, method, *cells in table["rows"]:
        start = 0
        for block in table["blocks"]:
            headings = block["columns"]
            end = start + len(headings)
            numbers = {h: parse(c) for h, c in zip(headings, cells[start:end], strict=True) if c}
            start = end
            parties = block.get("partner", ""), block.get("judge", "")
            where = block["environment"], block["split"], *parties
            row = source, table["kind"], model, kind, method
            yield Reported(*row, *where, numbers, table["note"])
        if start != len(cells):
            raise ValueError(f"{source}, {method}: {len(cells)} numbers, expected {start}")


def parse(cell: str) -> Number:
    """Return the number in a cell, such as `"92.77±1.08"` or `"75.3"`; refuse another form."""
    found = _NUMBER.fullmatch(cell)
    if not found:
        raise ValueError(f"expected a number such as 92.7±0.7, got {cell!r}")
    std = None if found[2] is None else float(found[2])
    return Number(float(found[1]), std, len(found[1].partition(".")[2]))


def comparable_results(
    environment: str, split: str, kind: str = MAIN, *, partner: str = "", judge: str = ""
) -> list[Reported]:
    """Return reported results on a split, or an unnamed one, with the same partner and judge."""
    parties = tuple(_DATE.sub("", name.lower().rpartition("/")[2]) for name in (partner, judge))
    rows = [r for r in load() if r.kind == kind and r.environment == environment]
    rows = [row for row in rows if (row.partner, row.judge) == parties]
    return [row for row in rows if row.split in ("", split)]
