"""Recordings as rows of data: one row per episode, in forms that other programs read.

Takes recordings; returns rows (`rows`), JSON-plain, whose columns are the same for all
environments. `chats` has the forms of chats, `atif` that of Harbor's trajectories, `episode` what
they have in common.
"""

from agentgyms.adapters.export.rows import FORMS, rows

__all__ = ["FORMS", "rows"]
