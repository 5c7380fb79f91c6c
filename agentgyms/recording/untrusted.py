"""Checks a stranger's recording, which may name environments in this process, and nothing else."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Final

from agentgyms.core.arguments import check_limits, private_names
from agentgyms.core.env import TextEnv
from agentgyms.core.errors import AgentGymsError, BadOption
from agentgyms.core.outcome import shown
from agentgyms.registration import find_maker

WORK_LIMIT_S: Final = 60.0
"""Most seconds that recorded arguments may make an environment work before an episode."""


def check_id(env_id: str) -> str:
    """Return a recorded id; raise `BadOption` if it would import a module."""
    module, colon, _ = env_id.rpartition(":")
    if colon:
        raise BadOption(
            f"the recording names the environment {env_id!r}, which would import the module "
            f"{module!r}: if you trust it, give the id yourself (on the command line: --env "
            f"{env_id})"
        )
    return env_id


def check_arguments(maker: Any, recorded: Mapping[str, Any]) -> None:
    """Raise `BadOption` if a recording gives arguments of `maker` that only the user may give."""
    if names := private_names(maker, recorded):
        given = ", ".join(f"{name}={shown(recorded[name])}" for name in names)
        options = " ".join(f"--set {name}=..." for name in names)
        raise BadOption(
            f"the recording gives {given}, which decides what is read, run or connected to, and "
            f"which servers get your keys: give it yourself (on the command line: {options})"
        )


def make_here(env_id: str, recorded: Mapping[str, Any]) -> TextEnv:
    """Return a recorded environment, made in this process whatever addresses are set.

    The recorded arguments may cost as much as those of servers' clients. Raises `BadOption` if the
    environment would import or read something, costs too much or cannot be made. Raises
    `AgentGymsError` if its data or engine is missing here.
    """
    found, registered = find_maker(check_id(env_id))
    if not inspect.isclass(found):
        raise BadOption(f"{env_id} is made by a function, which may do anything: give a class")
    maker: Any = found
    check_arguments(maker, recorded)
    check_limits(maker.client_limits, recorded)
    try:
        env: TextEnv = maker(**{**registered, **recorded})
    except AgentGymsError:
        raise
    except (TypeError, ValueError) as e:
        raise BadOption(f"{env_id} does not take the recorded arguments: {e}") from None
    env.work_limit_s = WORK_LIMIT_S
    return env
