"""Opens the shop of an environment: the generated catalogue, or the imported official one."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import cache, lru_cache, wraps
from pathlib import Path
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar

from agentgyms.core.errors import BadOption, DataMissing
from agentgyms.data import datasets
from agentgyms.data.manifests import MANIFEST
from agentgyms.envs.webshop.catalogue.catalogue import Catalogue
from agentgyms.envs.webshop.catalogue.generated import GENERATED_VERSION, generated_products
from agentgyms.envs.webshop.goals.goal_list import GoalList, check_kind
from agentgyms.envs.webshop.goals.nouns import NounExtractor, open_extractor
from agentgyms.envs.webshop.shop import Shop

SOURCES: Final = ("generated", "official")

_CACHED_SHOPS: Final = 8

FilePath = str | os.PathLike[str]
P = ParamSpec("P")
T = TypeVar("T")


class OpenedShop(NamedTuple):
    """A function that returns the shop, made at its first call, and the version of its data."""

    load: Callable[[], Shop]
    version: str


class _Folder(NamedTuple):
    """A catalogue's folder with its manifest's time and size, which change with every import."""

    path: Path
    modified_ns: int
    size: int


def open_shop(
    source: str = "generated",
    data_path: FilePath | None = None,
    goals: str = "synthetic",
    goal_seed: int = 233,
    nouns: str = "builtin",
) -> OpenedShop:
    """Return the shared shop of `WebShopEnv`'s arguments; an official one is checked at once."""
    if source not in SOURCES:
        raise BadOption(f"source {source!r} is unknown: expected one of {', '.join(SOURCES)}")
    check_kind(goals)
    if type(goal_seed) is not int or not 0 <= goal_seed < 2**63:
        raise BadOption(f"goal_seed must be an integer from 0 to 2**63 - 1, got {goal_seed!r}")
    if not isinstance(nouns, str):
        raise BadOption(f"nouns must be 'builtin' or 'spacy:<model>', got {nouns!r:.60}")
    extractor = _extractor(nouns).name
    if source == "official":
        folder = _folder(data_path)
        catalogue = _open_catalogue(folder).version
    elif data_path is None:
        folder, catalogue = None, GENERATED_VERSION
    else:
        raise BadOption("data_path is for source='official': leave it out, or pass that as well")
    version = f"{catalogue} {goals}-{goal_seed} {extractor}"
    return OpenedShop(lambda: _shop(folder, goals, goal_seed, nouns), version)


def _synchronized(make: Callable[P, T]) -> Callable[P, T]:
    """Return `make` under a lock, so that threads do not make the same object twice."""
    lock = threading.Lock()

    @wraps(make)
    def locked(*args: P.args, **kwargs: P.kwargs) -> T:
        with lock:
            return make(*args, **kwargs)

    return locked


@_synchronized
@lru_cache(_CACHED_SHOPS)
def _shop(folder: _Folder | None, goals: str, goal_seed: int, nouns: str) -> Shop:
    catalogue = _generated_catalogue() if folder is None else _open_catalogue(folder)
    return Shop(catalogue, GoalList.of(catalogue, goals, goal_seed), _extractor(nouns))


@_synchronized
@lru_cache(_CACHED_SHOPS)
def _extractor(nouns: str) -> NounExtractor:
    return open_extractor(nouns)


@_synchronized
@cache
def _generated_catalogue() -> Catalogue:
    return Catalogue.of(generated_products(), GENERATED_VERSION)


@_synchronized
@lru_cache(_CACHED_SHOPS)
def _open_catalogue(folder: _Folder) -> Catalogue:
    return Catalogue.open(folder.path)


def _folder(data_path: Any) -> _Folder:
    if data_path is None:
        path = datasets.find("webshop")
    elif isinstance(data_path, str | os.PathLike) and isinstance(os.fspath(data_path), str):
        path = Path(data_path)
    else:
        raise BadOption(f"data_path must be a path, got {data_path!r:.60}")
    try:
        status = (path / MANIFEST).stat()
    except (OSError, ValueError):
        raise DataMissing(
            f"there is no catalogue in {path}: expected a folder that "
            "`agentgyms data import webshop PATH` has made"
        ) from None
    return _Folder(path.absolute(), status.st_mtime_ns, status.st_size)
