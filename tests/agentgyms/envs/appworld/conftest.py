"""What tests of AppWorld share: executors, and our data for the engine, built once in a session."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from kettle import BRIEF

from agentgyms.envs.appworld.engine import sources
from agentgyms.envs.appworld.engine.data_roots import Roots
from agentgyms.envs.appworld.sandbox.executors import Executor, executor


@pytest.fixture(scope="session")
def engine_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data home with our data for the real engine."""
    home = tmp_path_factory.mktemp("appworld-home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENTGYMS_DATA", str(home))
        sources.generated(os.environ["AGENTGYMS_APPWORLD_PYTHON"])
    return home


@pytest.fixture(scope="module")
def generated_roots(engine_home: Path) -> Iterator[Roots]:
    """Our data, which environments of the module find in their data home, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENTGYMS_DATA", str(engine_home))
        yield sources.generated(os.environ["AGENTGYMS_APPWORLD_PYTHON"])


@pytest.fixture(scope="module")
def generated_root(generated_roots: Roots) -> Path:
    """A root for plain AppWorld, ground truth included; leave its `data` as it is."""
    return generated_roots.truth


@pytest.fixture
def process() -> Iterator[Executor]:
    """An executor that the test may ruin."""
    leased = executor("mini")
    leased.begin(BRIEF)
    yield leased
    leased.close()


@pytest.fixture(scope="module")
def shared() -> Iterator[Executor]:
    """An executor for code that leaves nothing behind."""
    leased = executor("mini")
    leased.begin(BRIEF)
    yield leased
    leased.close()
