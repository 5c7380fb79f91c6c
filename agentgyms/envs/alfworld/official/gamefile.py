"""Reads official game files, `game.tw-pddl`, and checks that the engine supports their version.

A file is a JSON object of a PDDL domain (the rules), a grammar (the wording), a PDDL problem (the
household) and a walkthrough. The engine has rules and wording built in, so both are recognised by
digest. Files from before alfworld 0.4 (`put X in/on Y`) follow other rules and are refused.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from agentgyms.core.errors import DataCorrupt, DataMissing
from agentgyms.data.users_files import lines_in, parse_json, read_bytes
from agentgyms.envs.alfworld.builder import build_game
from agentgyms.envs.alfworld.game import Game
from agentgyms.envs.alfworld.problem import Problem, parse_problem

GAME_FILE: Final = "game.tw-pddl"
TASK_PREFIX: Final = "Your task is to: "

TASK_TYPES: Final = {
    "pick_and_place_simple": "pick",
    "look_at_obj_in_light": "look",
    "pick_clean_then_place_in_recep": "clean",
    "pick_heat_then_place_in_recep": "heat",
    "pick_cool_then_place_in_recep": "cool",
    "pick_two_obj_and_place": "pick2",
}
"""ALFWorld's names of the families, the prefixes of its task folders."""

_DOMAINS: Final = {
    "54e29bce2933d7dc": "release json_2.1.2_tw-pddl",
    "da18d44ab1bcf831": "alfworld 0.4.2, which writes games too",
    "e7af772700e0d5d6": "agentgyms",
}
_GRAMMARS: Final = {
    "af191038ff7d6ca1": "release json_2.1.2_tw-pddl",
    "21df8efa6d153779": "alfworld 0.4.2",
    "20f14beccccdcdd1": "agentgyms",
}
_TASK: Final = re.compile(rf'("rhs"\s*:\s*"){TASK_PREFIX}([^"]*)"')
_COMMENT: Final = re.compile(r";[^\n]*")
_ADVICE: Final = "import the data set again: agentgyms data import alfworld PATH"


def read_game(path: Path, name: str) -> Game:
    """Return a file's game; raise `DataMissing`, or `DataCorrupt` if damaged or of other rules."""
    try:
        return build_game(parse_game(read_bytes(path)), name)
    except FileNotFoundError:
        raise DataMissing(f"the game file {path} does not exist any more; {_ADVICE}") from None
    except ValueError as e:
        raise DataCorrupt(f"{path} cannot be played: {e}; {_ADVICE}") from None


def parse_game(content: bytes) -> Problem:
    """Parse the content of a game file; `ValueError` if it is damaged or of another generation."""
    try:
        fields = parse_json(content)
    except ValueError as e:
        raise ValueError(f"it is no whole JSON file ({e})") from None
    wanted = ("pddl_domain", "grammar", "pddl_problem")
    if not isinstance(fields, dict) or not all(isinstance(fields.get(k), str) for k in wanted):
        raise ValueError(f"it lacks one of the texts {', '.join(wanted)}")
    sentence, grammar = _split_task(fields["grammar"])
    check_generation(fields["pddl_domain"], grammar)
    facts, goal = parse_problem(fields["pddl_problem"])
    walkthrough = fields.get("walkthrough") or []
    if not isinstance(walkthrough, list):
        raise ValueError("its walkthrough is no list of commands")
    return Problem(facts, goal, sentence, tuple(map(str, walkthrough)))


def _split_task(grammar: str) -> tuple[str, str]:
    """Return the task sentence and the grammar without it."""
    found = _TASK.search(grammar)
    if found is None:
        raise ValueError("its grammar has no task sentence")
    return found[2], grammar[: found.start(2)] + grammar[found.end(2) :]


@lru_cache(maxsize=4)
def check_generation(domain: str, grammar: str) -> None:
    """Check that rules and wording are those of the engine; raise `ValueError` if not."""
    rules, wording = domain_digest(domain), grammar_digest(grammar)
    if rules in _DOMAINS and wording in _GRAMMARS:
        return
    if "put {o} in/on {r}" in grammar:
        raise ValueError(
            "it is of the generation before alfworld 0.4, whose commands are 'put X in/on Y'; "
            "get json_2.1.2_tw-pddl: agentgyms data fetch alfworld"
        )
    raise ValueError(
        f"its rules (digest {rules}) or its wording (digest {wording}) are of an unknown "
        "generation; known are the release json_2.1.2_tw-pddl and games written by agentgyms"
    )


def domain_digest(domain: str) -> str:
    """Return a digest of PDDL rules that ignores comments, case and layout."""
    text = " ".join(_COMMENT.sub("", domain.lower()).split())
    return sha256(text.encode()).hexdigest()[:16]


def grammar_digest(grammar: str) -> str:
    """Return a digest of a grammar that ignores line ends."""
    text = "\n".join(line.rstrip() for line in lines_in(grammar.strip()))
    return sha256(text.encode()).hexdigest()[:16]
