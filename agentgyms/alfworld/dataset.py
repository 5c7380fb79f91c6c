"""The official games as a data set: which files they are, and how the release is recognised."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import Final

from agentgyms.alfworld.gamefile import GAME_FILE, parse_game
from agentgyms.data import DataSet
from agentgyms.manifests import Item, Part

SPLITS: Final = ("train", "valid_seen", "valid_unseen")

_GAME: Final = re.compile(rf"(?:^|/)((?:{'|'.join(SPLITS)})/[^/]+/[^/]+/{re.escape(GAME_FILE)})$")


def keep(name: str) -> str | None:
    """Return `<split>/<task>/<trial>/game.tw-pddl` for the games, whatever folders they are in."""
    found = _GAME.search(name)
    return found[1] if found else None


def describe(name: str, content: bytes) -> Item:
    """Return the game in a file; its digest ignores how the JSON is written.

    Raises:
        ValueError: The file is damaged.
    """
    split, task, trial, _ = name.split("/")
    parse_game(content)
    canonical = json.dumps(json.loads(content), sort_keys=True)
    return Item(split, f"{task}/{trial}", sha256(canonical.encode()).hexdigest())


DATA_SET: Final = DataSet(
    name="alfworld",
    title="the 3827 text games of ALFWorld, release json_2.1.2_tw-pddl",
    licence="MIT",
    url=("https://github.com/alfworld/alfworld/releases/download/0.4.0/json_2.1.2_tw-pddl.zip"),
    keep=keep,
    describe=describe,
    parts={
        "train": Part(3553, "4ec0cbfaaecee1df"),
        "valid_seen": Part(140, "2c2dc2554f4fc606"),
        "valid_unseen": Part(134, "e4ecf6578cb19e52"),
    },
)
"""The release that papers report on."""
