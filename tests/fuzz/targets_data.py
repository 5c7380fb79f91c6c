"""Targets: archives, and files of data sets that people import."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

from fuzz_target import Broken, scratch, target, written

from agentgyms.core.errors import DataCorrupt, DataMissing
from agentgyms.data.archives import copy_files, read_files
from agentgyms.data.manifests import MANIFEST, Item, read_manifest, summarize, write_manifest
from agentgyms.envs.alfworld.builder import build_game
from agentgyms.envs.alfworld.generated import generator
from agentgyms.envs.alfworld.generated.writer import game_fields, pddl_problem
from agentgyms.envs.alfworld.official.gamefile import parse_game
from agentgyms.envs.alfworld.problem import Problem, parse_problem
from agentgyms.envs.searchqa.corpus import load_corpus
from agentgyms.envs.searchqa.flashrag import load_questions
from agentgyms.envs.sokoban.levels import read_drawings
from agentgyms.envs.sotopia.official import encounters
from agentgyms.envs.webshop.build import json_stream, official_items

FILES = {"a/agents.json": b'[{"pk": "p0"}]', "b.txt": b"text" * 40, "c/": b""}


def _tar(mode: str) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=f"w:{mode}") as archive:
        for name, content in FILES.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            member.type = tarfile.DIRTYPE if name.endswith("/") else tarfile.REGTYPE
            archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


def _zip(method: int) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in FILES.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return file.getvalue()


def _archive_seeds() -> list[bytes]:
    zips = [_zip(method) for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)]
    return [*zips, *(_tar(mode) for mode in ("", "gz", "bz2", "xz"))]


@target(DataCorrupt, DataMissing, seeds=_archive_seeds, kind="bytes", steps_per_byte=8_000)
def archives(data: bytes) -> Any:
    """The files of an archive are read and unpacked into its folder, or it is refused."""
    archive = written(data, "archive.bin")
    folder = scratch() / "unpacked"
    before = sorted(path.name for path in scratch().iterdir() if path != folder)
    found = sorted(read_files(archive, lambda name: name))
    try:
        copy_files(archive, lambda name: name, folder)
        unpacked = sorted(path for path in folder.rglob("*") if path.is_file())
        contents = [(path.relative_to(folder).as_posix(), path.read_bytes()) for path in unpacked]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if sorted(path.name for path in scratch().iterdir()) != before:
        raise Broken("something was unpacked beside its folder")
    if {Path(name).as_posix() for name, _ in found} != {name for name, _ in contents}:
        raise Broken(f"{found!r:.300} was read, {contents!r:.300} unpacked")
    return contents


def _manifest_seeds() -> list[bytes]:
    parts = summarize([Item("train", "a", "0"), Item("test", "b", "1")])
    folder = scratch()
    write_manifest(folder, {"data_set": "x", "splits": parts, "files": {"a": [1, "0"]}})
    return [(folder / MANIFEST).read_bytes()]


@target(DataCorrupt, seeds=_manifest_seeds)
def manifests(data: bytes) -> Any:
    """A manifest is read or refused."""
    return read_manifest(written(data, f"data_set/{MANIFEST}").parent)


@cache
def _problem() -> Problem:
    return generator.generate(generator.list_tasks("small", "train")[0].task_id)


@target(
    ValueError,
    seeds=lambda: [pddl_problem(_problem(), "a").encode()],
    kind="text",
    steps_per_byte=8_000,
)
def alfworld_problems(data: bytes) -> Any:
    """A problem in PDDL becomes a game that can be played, or is refused."""
    facts, goal = parse_problem(data.decode("utf-8", "replace"))
    return _played(Problem(facts, goal, "put a mug in shelf.", ()))


def _played(problem: Problem) -> Any:
    game = build_game(problem, "fuzzed")
    return game.salt, game.receptacles, game.objects


@target(
    ValueError,
    seeds=lambda: [json.dumps(game_fields(_problem(), "a")).encode()],
    steps_per_byte=8_000,
)
def alfworld_files(data: bytes) -> Any:
    """A game file, PDDL and grammar, becomes a game, or is refused."""
    return _played(parse_game(data))


def _level_seeds() -> list[bytes]:
    return [b"; 1\n#####\n#@$.#\n#####\n\n; 2\n######\n#+ $ #\n# *  #\n######\n"]


@target(DataCorrupt, DataMissing, seeds=_level_seeds, kind="text")
def sokoban_levels(data: bytes) -> Any:
    """Levels become rooms, or are refused."""
    return [drawing.room() for drawing in read_drawings(written(data, "levels.txt"))]


def _profile_seeds() -> list[bytes]:
    person = {"pk": "p0", "first_name": "Ann", "last_name": "Lee", "age": 30,
        "occupation": "Baker", "gender": "Woman", "gender_pronoun": "She/her", "public_info": "x",
        "personality_and_values": "calm", "secret": "none"}  # fmt: skip
    scenario = {"pk": "s0", "codename": "bread", "source": "craft", "scenario": "Two bakers.",
        "agent_goals": ["Bake first", "Bake too"], "relationship": 3,
        "age_constraint": "[(18, 70), (18, 70)]", "occupation_constraint": "nan",
        "agent_constraint": "none"}  # fmt: skip
    tables = {
        "agents.json": [person, person | {"pk": "p1", "first_name": "Bob", "age": "40"}],
        "environments.json": [scenario],
        "relationships.json": [
            {"pk": "r0", "agent_1_id": "p0", "agent_2_id": "p1", "relationship": 3,
             "background_story": "They met."}
        ],
        "env_agent_combos.json": [{"pk": "c0", "env_id": "s0", "agent_ids": ["p0", "p1"]}],
    }  # fmt: skip
    return [json.dumps(tables).encode()]


@target(DataCorrupt, DataMissing, seeds=_profile_seeds, steps_per_byte=4_000)
def sotopia_profiles(data: bytes) -> Any:
    """Tables of people and scenarios become encounters, or are refused."""
    try:
        tables = json.loads(data)
    except (ValueError, RecursionError):
        return None
    folder = scratch() / "profiles"
    try:
        for name, rows in tables.items() if isinstance(tables, dict) else ():
            if "/" not in name and name.isascii() and name.isprintable() and 0 < len(name) < 99:
                written(json.dumps(rows).encode(), f"profiles/{name}")
        folder.mkdir(exist_ok=True)
        found = encounters.read(folder)
        return found, found.parts
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _document_seeds() -> list[bytes]:
    lines = [{"id": str(i), "contents": f'"Title {i}"\nText.'} for i in range(3)]
    return ["\n".join(json.dumps(line) for line in lines).encode()]


@target(DataCorrupt, DataMissing, seeds=_document_seeds, kind="lines")
def searchqa_corpora(data: bytes) -> Any:
    """Paragraphs are read or refused."""
    return load_corpus(written(data, "corpus.jsonl"))


def _question_seeds() -> list[bytes]:
    lines = [
        {"id": "a", "question": "Who?", "golden_answers": ["Ann", "Lee"]},
        {"id": 7, "question": "Where?", "golden_answers": "here", "data_source": "nq"},
    ]
    return ["\n".join(json.dumps(line) for line in lines).encode()]


@target(DataCorrupt, DataMissing, seeds=_question_seeds, kind="lines")
def searchqa_questions(data: bytes) -> Any:
    """Questions are read or refused."""
    from agentgyms.envs.searchqa import flashrag

    flashrag._load.cache_clear()
    found = load_questions(written(data, "questions.jsonl"), "train")
    return found.version


def _item_seeds() -> list[bytes]:
    item = {"asin": "B0TEST0001", "name": "Lamp", "full_description": "A lamp.",
        "small_description": ["Warm", "Small"], "category": "garden", "query": "desk lamps",
        "product_category": "Home", "pricing": "$5.99 - $12.99", "images": ["http://x/y.jpg"],
        "customization_options": {"color": [{"value": "oak"}, {"value": "black"}]},
        "about": {"attributes": ["dimmable"], "instruction": "Find me lamps",
            "instruction_attributes": ["dimmable"]},
        "people": [{"instruction": "a lamp", "instruction_attributes": ["dimmable"],
            "instruction_options": ["oak"]}]}  # fmt: skip
    return [json.dumps([item, item | {"asin": "nan"}]).encode()]


@target(DataCorrupt, seeds=_item_seeds)
def webshop_items(data: bytes) -> Any:
    """A list of products is the same read in pieces of any size; each is a product or refused."""
    file = written(data, "items_shuffle.json")
    found = [_read(file, size) for size in (1, 7, 1 << 20)]
    if found[0] != found[2] or found[1] != found[2]:
        raise Broken(f"read in pieces: {found!r:.600}")
    for number, item in enumerate(json_stream.list_items(file)):
        where = f"item {number}"
        if official_items.asin_of(item.value, where) is not None:
            about, people = item.value.get("about"), item.value.get("people")
            official_items.product_of(item.value, about, people, where)
    return found[2]


def _read(file: Path, size: int) -> str:
    try:
        items = json_stream.list_items(file, chunk_bytes=size)
        return repr([(item.value, item.end) for item in items])
    except DataCorrupt:
        return "refused"
