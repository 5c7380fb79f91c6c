"""Finds or builds the data of the real engine: generated, or that of AppWorld."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import tempfile
import time
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal

from agentgyms.core.errors import DataCorrupt, DataMissing, EnvUnavailable
from agentgyms.data import datasets
from agentgyms.data.datasets import DataSet
from agentgyms.data.folders import resumable_folder
from agentgyms.data.manifests import Item, digest_file, summarize
from agentgyms.envs.appworld.engine.data_roots import (
    SPLITS,
    Roots,
    divide,
    divided,
    files_of,
    find_data,
)
from agentgyms.envs.appworld.sandbox import install
from agentgyms.envs.appworld.sandbox.child import generated as generator
from agentgyms.envs.appworld.sandbox.forkserver import role_environment

Source = Literal["generated", "official"]

_BUILD_LIMIT_S: Final = 600.0
_WAIT_S: Final = 0.5

_BUILD: Final = """
import sys
sys.path.insert(0, sys.argv[1])
from child import generated
del sys.path[0]
generated.build(sys.argv[2])
"""


def find(source: Source, path: str | os.PathLike[str] | None, python: str) -> Roots:
    """Return the roots of a source; generated data is built at its first use.

    `path` is a folder with AppWorld's data, or one that `divide` made; by default the generated
    data below the data home, or the data set "appworld".
    """
    if path is not None:
        return _divided_folder(Path(path).absolute(), os.getpid())
    if source == "generated":
        return generated(python)
    if (found := divided(datasets.home() / "appworld")) is None:
        raise DataMissing(
            f"AppWorld's own tasks are not in {datasets.home() / 'appworld'}: download them with "
            "`agentgyms setup appworld --data official`, or take them from a folder with "
            "`agentgyms setup appworld --data PATH`"
        )
    return found


@functools.lru_cache(maxsize=8)
def _divided_folder(path: Path, process: int) -> Roots:
    found = divided(path)
    if found is not None:
        return found
    target = Path(tempfile.mkdtemp(prefix="agentgyms-appworld-"))
    _remove_at_exit(target, process)
    return divide(path, target, link=True)


def _remove_at_exit(folder: Path, process: int) -> None:
    def remove() -> None:
        if os.getpid() == process:  # not in a forked process
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)


def generated(python: str) -> Roots:
    """Return the generated data's roots, built on first use (in a temporary folder if need be)."""
    name = _generated_name()
    found = divided(datasets.home() / name)
    if found is not None:
        return found
    try:
        datasets.home().mkdir(parents=True, exist_ok=True)
        writable = os.access(datasets.home(), os.W_OK)
    except OSError:
        writable = False
    return _build_or_wait(
        datasets.home() if writable else _temporary_home(os.getpid()), name, python
    )


def find_generated() -> Roots:
    """Return the roots of the generated data below the data home, without building it."""
    folder = datasets.home() / _generated_name()
    if (found := divided(folder)) is None:
        raise DataMissing(
            f"the generated tasks for AppWorld are not in {folder} yet: `agentgyms setup appworld` "
            "builds them, and so does their first use"
        )
    return found


def _generated_name() -> str:
    return f"appworld-generated-{install.VERSION}-{generator.version()}"


@functools.lru_cache(maxsize=1)
def _temporary_home(process: int) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="agentgyms-appworld-"))
    _remove_at_exit(folder, process)
    return folder


def _build_or_wait(home: Path, name: str, python: str) -> Roots:
    deadline = time.monotonic() + _BUILD_LIMIT_S
    while (found := divided(home / name)) is None:
        try:
            with resumable_folder(home / f".{name}") as work:
                if divided(home / name) is None:
                    _build(work, home / name, python)
        except EnvUnavailable as e:
            if isinstance(e, _BuildFailed) or time.monotonic() > deadline:
                raise
            time.sleep(_WAIT_S)
    return found


class _BuildFailed(EnvUnavailable):
    """The generator ended with an error."""


def _build(work: Path, target: Path, python: str) -> None:
    for leftover in work.iterdir():
        shutil.rmtree(leftover)
    # A builder whose parent was killed may still be writing, so each has its own folder.
    root = Path(tempfile.mkdtemp(prefix="root-", dir=work)) / "root"
    sandbox = Path(__file__).parents[1] / "sandbox"
    command = [
        python,
        "-P",
        "-s",
        "-B",
        "-W",
        "ignore",
        "-c",
        _BUILD,
        str(sandbox),
        str(root),
    ]
    try:
        done = subprocess.run(
            command,
            env=role_environment(HOME=str(work), APPWORLD_ROOT=str(work), APPWORLD_CACHE=str(work)),
            cwd="/",
            capture_output=True,
            text=True,
            timeout=_BUILD_LIMIT_S,
        )
    except subprocess.TimeoutExpired as e:
        raise _BuildFailed(
            f"the generated data for AppWorld was not built in {e.timeout:g} s"
        ) from None
    if done.returncode:
        raise _BuildFailed(
            f"the generated data for AppWorld could not be built with {python}: "
            f"{done.stderr.strip()[-2000:]}"
        )
    divide(root, work / "new", link=True)
    (work / "new").rename(target)


def official(source: Path, target: Path, progress: bool) -> dict[str, Any]:
    """Divide AppWorld's data of a folder, and return its part of the manifest."""
    if not source.is_dir():
        raise DataMissing(f"{source} is not a folder: expected one with AppWorld's data")
    find_data(source)
    roots = divide(source, target, progress=progress)
    items = [
        Item(split, task, _digest_of(roots, task))
        for split in SPLITS
        for task in roots.tasks(split)
    ]
    files = {
        name: (Path(target, name).stat().st_size, digest_file(Path(target, name)))
        for name in files_of(target)
    }
    return {"splits": summarize(items), "files": files}


def _digest_of(roots: Roots, task: str) -> str:
    file = roots.world / "data" / "tasks" / task / "specs.json"
    if not file.is_file():
        raise DataCorrupt(f"AppWorld's data lists the task {task}, but {file} is missing")
    return sha256(file.read_bytes()).hexdigest()


DATA_SET: Final = DataSet(
    name="appworld",
    title="the 732 tasks of AppWorld, for its own engine",
    licence="Apache-2.0, redistribution only encrypted",
    url="",
    by_hand="fetch it with `agentgyms setup appworld --data official`",
    command="agentgyms setup appworld --data official",
    build=official,
)
"""AppWorld's own data. Its terms forbid publishing it, or data derived from it, in plain text."""
