"""Ids of environments, and what is made from them: one environment, a vector, a group.

Takes an id and keyword arguments; returns Gymnasium environments (`ids`), in this process or on
servers, and groups that start in one state (`group`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.core.imports import lazy_names
from agentgyms.registration.ids import (
    ENVIRONMENTS,
    env_class,
    find_maker,
    full_id,
    made,
    make_env,
    make_text_env,
    make_vector_env,
    register_all,
    short_name,
    url_from_environment,
)

if TYPE_CHECKING:
    from agentgyms.registration.group import GroupEnv

__all__ = [
    "ENVIRONMENTS",
    "GroupEnv",
    "env_class",
    "find_maker",
    "full_id",
    "made",
    "make_env",
    "make_text_env",
    "make_vector_env",
    "register_all",
    "short_name",
    "url_from_environment",
]

__getattr__ = lazy_names(__name__, {"agentgyms.registration.group": "GroupEnv"})
