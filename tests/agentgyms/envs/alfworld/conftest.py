"""Real games and the official engine, for the tests that are marked `data` and `official`."""

import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest
from real_games_source import ARCHIVE, find_real_games

from agentgyms.core.errors import DataMissing, EnvUnavailable
from agentgyms.data import datasets
from agentgyms.envs.alfworld.official.engine import PYTHON_VARIABLE, OfficialEngine, is_installed


@pytest.fixture(scope="session")
def real_games():
    """The folder of the 3827 official games, imported once per machine."""
    given = os.environ.get("AGENTGYMS_TEST_DATA")
    source = find_real_games(Path(given)) if given else None
    if source is None:
        pytest.skip(f"AGENTGYMS_TEST_DATA names no folder with {ARCHIVE}, or with that unpacked")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENTGYMS_DATA", str(Path(tempfile.gettempdir(), "agentgyms-test-data")))
        while True:
            try:
                return datasets.find("alfworld")
            except DataMissing:
                # another process of these tests may be importing it
                with suppress(EnvUnavailable):
                    return datasets.import_data("alfworld", source, progress=False)
            time.sleep(0.5)


@pytest.fixture(scope="session")
def has_official_engine():
    """Skips where no interpreter with alfworld is known."""
    if not os.environ.get(PYTHON_VARIABLE) and not is_installed():
        pytest.skip(f"{PYTHON_VARIABLE} names no interpreter with alfworld")


@pytest.fixture
def official(has_official_engine):
    """The official engine."""
    engine = OfficialEngine()
    yield engine
    engine.close()
