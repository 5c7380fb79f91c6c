"""Registers the environments with Gymnasium; entry points are strings, so nothing is imported."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any, Final

import gymnasium as gym

if TYPE_CHECKING:
    from agentgyms.core import TextEnv

ENVIRONMENTS: Final = {
    "agentgyms/ALFWorld-v0": "agentgyms.alfworld.env:ALFWorldEnv",
    "agentgyms/AppWorld-v0": "agentgyms.appworld.env:AppWorldEnv",
    "agentgyms/Corridor-v0": "agentgyms.corridor:CorridorEnv",
    "agentgyms/SOTOPIA-v0": "agentgyms.sotopia.env:SOTOPIAEnv",
    "agentgyms/SearchQA-v0": "agentgyms.searchqa.env:SearchQAEnv",
    "agentgyms/Sokoban-v0": "agentgyms.sokoban.env:SokobanEnv",
    "agentgyms/VisualSokoban-v0": "agentgyms.sokoban.visual:VisualSokobanEnv",
    "agentgyms/WebShop-v0": "agentgyms.webshop.env:WebShopEnv",
    "agentgyms/WebShopBrowser-v0": "agentgyms.webshop.browser:WebShopBrowserEnv",
}
"""Every environment of the package and the class behind it."""


def register_all() -> None:
    """Register every id once; a second call changes nothing."""
    for env_id in ENVIRONMENTS:
        if env_id not in gym.registry:
            gym.register(
                id=env_id,
                entry_point="agentgyms.registration:make_env",
                vector_entry_point="agentgyms.registration:make_vector_env",
                kwargs={"env_id": env_id},
                # Gymnasium's checker is broken for good by a first reset that is refused;
                # `agentgyms.testing` checks more.
                disable_env_checker=True,
            )


def make_env(env_id: str, *, url: Any = None, token: str | None = None, **kwargs: Any) -> TextEnv:
    """Return the environment: in this process, or on the servers at `url`.

    Without `url`, the variable `AGENTGYMS_<NAME>_URL` (such as `AGENTGYMS_ALFWORLD_URL`) is read;
    it may hold several addresses separated by commas.
    """
    url = url or url_from_environment(env_id)
    if url:
        from agentgyms.remote import RemoteEnv

        return RemoteEnv(env_id, url=url, token=token, **kwargs)
    return env_class(env_id)(**kwargs)


def make_vector_env(
    env_id: str,
    num_envs: int,
    *,
    url: Any = None,
    token: str | None = None,
    autoreset_mode: gym.vector.AutoresetMode | str = gym.vector.AutoresetMode.NEXT_STEP,
    **kwargs: Any,
) -> gym.vector.VectorEnv[Any, Any, Any]:
    """Return `num_envs` environments: one HTTP call per step with `url`, else a `SyncVectorEnv`."""
    url = url or url_from_environment(env_id)
    if url:
        from agentgyms.remote import RemoteVectorEnv

        return RemoteVectorEnv(
            env_id, num_envs, url=url, token=token, autoreset_mode=autoreset_mode, **kwargs
        )
    makers = [lambda: gym.make(env_id, **kwargs)] * num_envs
    return gym.vector.SyncVectorEnv(makers, autoreset_mode=autoreset_mode)


def env_class(env_id: str) -> type[TextEnv]:
    """Return the class behind an id of `ENVIRONMENTS`."""
    module, _, name = ENVIRONMENTS[env_id].partition(":")
    loaded: type[TextEnv] = getattr(importlib.import_module(module), name)
    return loaded


def url_from_environment(env_id: str) -> list[str]:
    """Return the server addresses that the environment variable of `env_id` names."""
    name = env_id.partition("/")[2].partition("-")[0].upper()
    return [
        url.strip() for url in os.environ.get(f"AGENTGYMS_{name}_URL", "").split(",") if url.strip()
    ]
