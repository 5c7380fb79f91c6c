"""Recordings as rows, one per episode, JSON-plain, with the same columns for all environments."""

from agentgyms.adapters.export.rows import FORMS, rows

__all__ = ["FORMS", "rows"]
