"""Credit: advantages from recorded turns. Pure numpy, without a model.

Takes a `TurnTable`; returns one advantage per row. `estimators` has one paper a file.
"""

from harness.credit import estimators  # noqa: F401 (registers the estimators)
from harness.credit.registry import check, get, names
from harness.credit.table import TurnTable

__all__ = ["TurnTable", "check", "get", "names"]
