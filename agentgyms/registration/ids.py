"""Registers the environments with Gymnasium; entry points are strings, so nothing is imported."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec, load_env_creator

from agentgyms.core import arguments
from agentgyms.core.errors import BadOption, did_you_mean
from agentgyms.core.imports import import_named

if TYPE_CHECKING:
    from agentgyms.core.env import TextEnv

ENVIRONMENTS: Final = {
    "agentgyms/ALFWorld-v0": "agentgyms.envs.alfworld.env:ALFWorldEnv",
    "agentgyms/AppWorld-v0": "agentgyms.envs.appworld.env:AppWorldEnv",
    "agentgyms/BabyAI-v0": "agentgyms.envs.games.babyai.env:BabyAIEnv",
    "agentgyms/Blackjack-v0": "agentgyms.envs.games.blackjack:BlackjackEnv",
    "agentgyms/Corridor-v0": "agentgyms.envs.corridor:CorridorEnv",
    "agentgyms/Countdown-v0": "agentgyms.envs.games.countdown:CountdownEnv",
    "agentgyms/EZPoints-v0": "agentgyms.envs.games.points:EZPointsEnv",
    "agentgyms/FrozenLake-v0": "agentgyms.envs.games.frozen_lake:FrozenLakeEnv",
    "agentgyms/Minesweeper-v0": "agentgyms.envs.games.minesweeper:MinesweeperEnv",
    "agentgyms/NumberLine-v0": "agentgyms.envs.games.number_line:NumberLineEnv",
    "agentgyms/Points24-v0": "agentgyms.envs.games.points:Points24Env",
    "agentgyms/SOTOPIA-v0": "agentgyms.envs.sotopia.env:SOTOPIAEnv",
    "agentgyms/ScienceWorld-v0": "agentgyms.envs.scienceworld.env:ScienceWorldEnv",
    "agentgyms/SearchQA-v0": "agentgyms.envs.searchqa.env:SearchQAEnv",
    "agentgyms/Sokoban-v0": "agentgyms.envs.sokoban.env:SokobanEnv",
    "agentgyms/TextCraft-v0": "agentgyms.envs.games.textcraft.env:TextCraftEnv",
    "agentgyms/TowerOfHanoi-v0": "agentgyms.envs.games.hanoi:TowerOfHanoiEnv",
    "agentgyms/Tau2-v0": "agentgyms.envs.tau2.env:Tau2Env",
    "agentgyms/VisualSokoban-v0": "agentgyms.envs.sokoban.visual:VisualSokobanEnv",
    "agentgyms/WebShop-v0": "agentgyms.envs.webshop.env:WebShopEnv",
    "agentgyms/WebShopBrowser-v0": "agentgyms.envs.webshop.browser.env:WebShopBrowserEnv",
}
"""Every environment of the package and the class behind it."""

_GYMNASIUM_ARGUMENTS: Final = ("max_episode_steps", "disable_env_checker")
"""Arguments that `gymnasium.make` keeps for itself."""
_SERVER_ARGUMENTS: Final = ("url", "token")
"""Arguments that every environment of this package takes, and no class of them."""


class _Spec(EnvSpec):
    """A spec whose vector entry point is there only where a call of `make_vec` wants it.

    `gymnasium.make_vec` takes a vector entry point wherever there is one, and then refuses
    `wrappers` and `vector_kwargs`. Before it looks, it adds the call's `kwargs` to the spec's,
    which `_before` remembers.
    """

    _before: dict[str, Any]

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "kwargs":
            super().__setattr__("_before", self.__dict__.get(name, value))
        super().__setattr__(name, value)

    @property
    def vector_entry_point(self) -> Any:  # a field there
        """The entry point where servers or a mode of automatic resets are given, else None."""
        given = {**self._before, **self.kwargs}
        wanted = given.get("url") or "autoreset_mode" in given or url_from_environment(self.id)
        return "agentgyms.registration:make_vector_env" if wanted else None

    @vector_entry_point.setter
    def vector_entry_point(self, value: Any) -> None:
        """Do nothing: `__init__` sets every field."""


def register_all() -> None:
    """Register every id once; a second call changes nothing."""
    for env_id in ENVIRONMENTS:
        if env_id not in gym.registry:
            gym.registry[env_id] = _Spec(
                id=env_id,
                entry_point="agentgyms.registration:make_env",
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
    try:
        return env_class(env_id)(**kwargs)
    except TypeError as e:
        refused = arguments.refusal(env_id, env_class(env_id), kwargs)
        if not refused:
            raise
        raise TypeError(refused) from e


class _RenderModes(list[str]):
    """Modes of rendering; unknown ones count as known, so that the environment refuses them."""

    def __contains__(self, mode: object) -> bool:
        made = isinstance(mode, str) and (mode == "human" or mode.endswith("_list"))
        return super().__contains__(mode) or not made


make_env.metadata = {  # type: ignore[attr-defined]
    "render_modes": _RenderModes(["ansi", "rgb_array"]),
    "render_fps": 1,
}


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
    return cast("type[TextEnv]", load_env_creator(ENVIRONMENTS[env_id]))


def full_id(env_id: str) -> str:
    """Return the id of an environment as `gymnasium.make` takes it.

    `env_id` is `ALFWorld`, `alfworld-v0`, `agentgyms/ALFWorld-v0`, another registered id, or
    `module:namespace/Name-v0`; the module is imported, also from the current folder. Raises
    `BadOption` with the ids that there are, `ImportError` if the module cannot be imported.
    """
    module, _, name = env_id.rpartition(":")
    if module:
        import_named(module)
        if name not in gym.registry:
            raise BadOption(f"the module {module} registers no environment {name!r:.80}")
        return env_id
    if env_id in gym.registry:
        return env_id
    short = env_id.lower().removeprefix("agentgyms/")
    for known in ENVIRONMENTS:
        if short in (known.partition("/")[2].lower(), short_name(known).lower()):
            return known
    names = list(map(short_name, ENVIRONMENTS))
    hint = did_you_mean(short_name(env_id), names)
    raise BadOption(
        f"there is no environment {env_id!r:.80}: expected one that `agentgyms list` names, "
        f"or module:id of one of yours{hint}"
    )


def short_name(env_id: str) -> str:
    """Return the name in an id: `ALFWorld` of `agentgyms/ALFWorld-v0`."""
    return env_id.rpartition("/")[2].rpartition(":")[2].partition("-v")[0]


def find_maker(env_id: str) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Return the maker of an environment, and the arguments that it is registered with.

    It is a class of `TextEnv`, or a function that may make one. For `env_id` see `full_id`. Raises
    `BadOption` if there is no such id, or its class is no `TextEnv`.
    """
    from agentgyms.core.env import TextEnv

    spec = gym.spec(full_id(env_id).rpartition(":")[2])
    kwargs = dict(spec.kwargs)
    entry = spec.entry_point
    maker: Any = load_env_creator(entry) if isinstance(entry, str) else entry
    if maker is make_env:
        maker = env_class(kwargs.pop("env_id"))
    if not callable(maker) or (inspect.isclass(maker) and not issubclass(maker, TextEnv)):
        raise _other_kind(env_id)
    return maker, kwargs


def made(env_id: str, kwargs: Mapping[str, Any]) -> gym.Env[Any, Any]:
    """Return `gymnasium.make(env_id, **kwargs)`; raise `BadOption` for an unknown argument."""
    try:
        return gym.make(env_id, **kwargs)
    except TypeError as e:
        passed_on = _GYMNASIUM_ARGUMENTS + (_SERVER_ARGUMENTS if env_id in ENVIRONMENTS else ())
        names = [name for name in kwargs if name not in passed_on]
        refused = arguments.refusal(env_id, find_maker(env_id)[0], names)
        if not refused:
            raise
        raise BadOption(refused) from e


def make_text_env(env_id: str, **kwargs: Any) -> gym.Env[Any, str]:
    """Return `gymnasium.make(full_id(env_id), **kwargs)`; `BadOption` if it is no `TextEnv`."""
    from agentgyms.core.env import TextEnv

    env = made(full_id(env_id), kwargs)
    if not isinstance(env.unwrapped, TextEnv):
        env.close()
        raise _other_kind(env_id)
    return env


def _other_kind(env_id: str) -> BadOption:
    return BadOption(
        f"{env_id} is no environment for language agents: expected one that `agentgyms list` "
        "shows, or a TextEnv of your own"
    )


def url_from_environment(env_id: str) -> list[str]:
    """Return the server addresses that the environment variable of `env_id` names."""
    name = env_id.partition("/")[2].partition("-")[0].upper()
    return [
        url.strip() for url in os.environ.get(f"AGENTGYMS_{name}_URL", "").split(",") if url.strip()
    ]
