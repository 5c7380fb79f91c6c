"""Which evaluations of a training run count: the last, the best, or the mean of the last ones."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness.types.errors import ResultError

_MEAN: Final = re.compile(r"last-([1-9]\d{0,3})")
FORMS: Final = "last, best, or last-N such as last-5"


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice among a run's evaluations, made on its validation split."""

    # `"last"`, `"best"` (GVPO, OPRL, SCPO's Fig. 6) or `"mean"` of the last ones (SALT's
    # Table 1)
    kind: str = "last"
    count: int = 1  # number of evaluations whose mean counts

    @classmethod
    def parse(cls, text: str) -> Choice:
        """Return the choice that a text names; refuse a text that is none of `FORMS`."""
        if count := count_of_last(text):
            return cls("mean", count)
        if text in ("last", "best"):
            return cls(text)
        raise ResultError(f"--checkpoint must be {FORMS}, got {text!r:.60}")

    @property
    def name(self) -> str:
        """Its text."""
        return f"last-{self.count}" if self.kind == "mean" else self.kind

    def steps(self, evaluations: Sequence[Mapping[str, Any]], figure: str, run: str) -> list[int]:
        """Return the steps that count, in order; raise `ResultError` if there are too few.

        The evaluations are of the validation split, by step, at least one. The best one has the
        greatest `figure`, `"success"` or `"score"`; of equal ones the earlier counts. `run` names
        the run in the error.
        """
        if len(evaluations) < self.count:
            raise ResultError(
                f"{run} has {len(evaluations)} evaluations of {evaluations[0]['split']}, and "
                f"--checkpoint {self.name} needs {self.count}: expected a smaller number, or a "
                "longer run"
            )
        if self.kind != "best":
            return [int(e["step"]) for e in evaluations[-self.count :]]
        best = max(evaluations, key=lambda e: (float(e.get(figure, e["success"])), -int(e["step"])))
        return [int(best["step"])]


def count_of_last(text: str) -> int | None:
    """Return N of the text `last-N`, None of another one."""
    found = _MEAN.fullmatch(text)
    return int(found[1]) if found else None


LAST: Final = Choice()
"""The choice where nothing else is asked for."""
