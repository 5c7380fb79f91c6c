"""Cases recorded from the peers' own code, and the rooms that several tests look at."""

import itertools
import json
import os
from pathlib import Path

import pytest

from agentgyms.envs.sokoban.env import SokobanEnv


@pytest.fixture(scope="session")
def recorded():
    """Reads the cases of one kind by the name of their file."""
    folder = os.environ.get("AGENTGYMS_TEST_CASES")
    if not folder:
        pytest.skip("AGENTGYMS_TEST_CASES names no folder of recorded cases")
    return lambda name: json.loads(Path(folder, "sokoban", name).read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def default_rooms():
    """All rooms that the environment generates with no argument given, by split."""
    source = SokobanEnv()._source
    return {split: source._made(split) for split in ("train", "valid", "test")}


@pytest.fixture
def level(tmp_path):
    """Makes an environment that plays one drawn level."""
    numbers = itertools.count()

    def open_level(drawing, **kwargs):
        file = tmp_path / str(next(numbers)) / "level.txt"  # files that were read are remembered
        file.parent.mkdir()
        file.write_text(drawing)
        env = SokobanEnv(levels=file, **{"split": "test", "text_format": "grid", **kwargs})
        env.reset(seed=0)
        return env

    return open_level
