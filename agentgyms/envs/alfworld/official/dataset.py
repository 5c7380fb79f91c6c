"""The official games as a data set: its files, and the digests of the published release."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import Final

from agentgyms.data.datasets import DataSet
from agentgyms.data.manifests import Item, Part
from agentgyms.data.users_files import parse_json
from agentgyms.envs.alfworld.official.gamefile import GAME_FILE, parse_game

SPLITS: Final = ("train", "valid_seen", "valid_unseen")

_GAME: Final = re.compile(rf"(?:^|/)((?:{'|'.join(SPLITS)})/[^/]+/[^/]+/{re.escape(GAME_FILE)})$")

ABSENT: Final = (
    f"each game is a file {GAME_FILE}, which ALFWorld's json_2.1.2_tw-pddl.zip has; its other "
    "archives, such as json_2.1.1_json.zip with traj_data.json, do not"
)
"""What a folder or an archive without a game lacks, and what has it."""


def keep(name: str) -> str | None:
    """Return `<split>/<task>/<trial>/game.tw-pddl` for a game file in any folder, else None."""
    found = _GAME.search(name)
    return found[1] if found else None


def describe(name: str, content: bytes) -> Item:
    """Return the item of a game file; its digest ignores the JSON's formatting."""
    split, task, trial, _ = name.split("/")
    parse_game(content)
    try:
        canonical = json.dumps(parse_json(content), sort_keys=True)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    return Item(split, f"{task}/{trial}", sha256(canonical.encode()).hexdigest())


DATA_SET: Final = DataSet(
    name="alfworld",
    title="the 3827 text games of ALFWorld, release json_2.1.2_tw-pddl",
    licence="MIT",
    url=("https://github.com/alfworld/alfworld/releases/download/0.4.0/json_2.1.2_tw-pddl.zip"),
    keep=keep,
    describe=describe,
    absent=ABSENT,
    parts={
        "train": Part(3553, "4ec0cbfaaecee1df"),
        "valid_seen": Part(140, "2c2dc2554f4fc606"),
        "valid_unseen": Part(134, "e4ecf6578cb19e52"),
    },
)
"""The release used in papers."""
