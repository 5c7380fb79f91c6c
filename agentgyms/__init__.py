"""Environments for language agents behind one Gymnasium interface.

Importing this package registers the environments and nothing else: engines, servers and models are
imported when an environment is made.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from agentgyms.registration import register_all

if TYPE_CHECKING:
    from agentgyms.experts import Expert
    from agentgyms.group import GroupEnv

try:
    __version__ = version("agentgyms")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

__all__ = ["__version__", "expert", "make_group"]

register_all()


def make_group(env_id: str, group_size: int, **kwargs: Any) -> GroupEnv:
    """Return `group_size` environments whose `reset` puts all of them into one initial state.

    Args:
        env_id: A registered id.
        group_size: Number of members, at least 1.
        **kwargs: As for `gymnasium.make`.
    """
    from agentgyms.group import GroupEnv

    return GroupEnv(env_id, group_size, **kwargs)


def expert(env: Any, kind: str = "best") -> Expert:
    """Return the expert policy of an environment: a callable that gives the next action.

    Args:
        env: A local environment, or a remote one made with `oracle=True`.
        kind: Which of the environment's experts; `"best"` knows the true state.

    Raises:
        BadOption: The environment has no expert. That it has none of this kind, or that a remote
            one does not tell, is known in an episode only: the expert's first call says it.
    """
    from agentgyms.experts import Expert

    return Expert(env, kind)
