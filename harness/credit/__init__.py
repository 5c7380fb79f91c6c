"""Credit: recorded turns in, advantages out. Pure numpy; no model is needed to replay it."""

from harness.credit import gigpo, grpo  # noqa: F401 (registers the estimators)
from harness.credit.registry import check, get, names
from harness.credit.table import TurnTable

__all__ = ["TurnTable", "check", "get", "names"]
