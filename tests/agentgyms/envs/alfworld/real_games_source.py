"""Where the folder `AGENTGYMS_TEST_DATA` holds the official games."""

from __future__ import annotations

from pathlib import Path

from agentgyms.envs.alfworld.official.dataset import SPLITS

ARCHIVE = "alfworld/alfworld_text_3827.tar.xz"


def find_real_games(test_data: Path) -> Path | None:
    """Return the archive or the folder with the games; None where there is neither."""
    if (test_data / ARCHIVE).is_file():
        return test_data / ARCHIVE
    unpacked = test_data / "alfworld"
    for folder in (unpacked, *sorted(unpacked.glob("json_*"))):
        if any((folder / split).is_dir() for split in SPLITS):
            return folder
    return None
