"""Environments for language agents behind one Gymnasium interface.

Importing this package registers the environments and nothing else: engines, servers and models are
imported when an environment is made. Where to look:

    core        to write an environment: `from agentgyms import TextEnv, Outcome, Feedback, Task`
    envs        the environments
    testing     to check an environment against the contract
    remote      to play on a server, `remote.protocol` for what is sent
    recording   to record episodes and replay them
    models      partners, judges and evaluated models behind servers
    data, cli   data sets, and the command `agentgyms`
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentgyms.core.imports import __version__, lazy_names
from agentgyms.registration import register_all

if TYPE_CHECKING:
    from agentgyms.core import errors, keys
    from agentgyms.core.env import TextEnv
    from agentgyms.core.experts import Expert
    from agentgyms.core.outcome import Feedback, Outcome
    from agentgyms.core.tasks import Task, TaskSet
    from agentgyms.registration import GroupEnv

__all__ = [
    "Feedback",
    "Outcome",
    "Task",
    "TaskSet",
    "TextEnv",
    "__version__",
    "errors",
    "expert",
    "keys",
    "make_group",
]

__getattr__ = lazy_names(
    __name__,
    {
        "agentgyms.core.outcome": "Feedback Outcome",
        "agentgyms.core.tasks": "Task TaskSet",
        "agentgyms.core.env": "TextEnv",
        "agentgyms.core.errors": "errors",
        "agentgyms.core.keys": "keys",
    },
)

register_all()


def make_group(env_id: str, group_size: int, **kwargs: Any) -> GroupEnv:
    """Return `group_size` environments whose `reset` puts all of them into one initial state.

    Args:
        env_id: An id such as `ALFWorld`, `agentgyms/ALFWorld-v0` or `module:mine/Guess-v0`.
        group_size: Number of members, at least 1.
        **kwargs: Further arguments of `gymnasium.make`.
    """
    from agentgyms.registration import GroupEnv

    return GroupEnv(env_id, group_size, **kwargs)


def expert(env: Any, kind: str = "best") -> Expert:
    """Return the expert policy of an environment: a callable that returns the next action.

    Args:
        env: A local environment, or a remote one made with `oracle=True`.
        kind: The kind of expert; `"best"` knows the true state.

    Raises:
        BadOption: The environment has no expert. If it has no expert of this kind, or a remote one
            does not send its solutions, the expert's first call raises this error.
    """
    from agentgyms.core.experts import Expert

    return Expert(env, kind)
