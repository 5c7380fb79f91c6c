"""Users' files: every reader takes the same texts and folders, and tells what it refuses."""

import codecs
import gzip
import json
import os
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import pytest

from agentgyms.core.errors import AgentGymsError
from agentgyms.data import datasets
from agentgyms.data.manifests import read_manifest
from agentgyms.data.users_files import MOST_BYTES, lines_in
from agentgyms.envs.alfworld.generated.writer import write_games
from agentgyms.envs.appworld.engine.data_roots import Roots, divide, files_of
from agentgyms.envs.searchqa.corpus import load_corpus
from agentgyms.envs.sotopia.official.files import read_tables
from agentgyms.envs.sotopia.sources import _files as sotopia_files
from agentgyms.envs.tau2.official.files import read as read_tau2
from agentgyms.envs.tau2.official.telecom.schemas import user_tools
from agentgyms.recording import RecordEpisodes, recording_format
from agentgyms.recording.recording_format import recordings_in
from harness.config import files as configs
from harness.evaluation import episodes
from harness.evaluation.results import read_json
from harness.rollouts import rollout_files
from harness.rollouts.search import preferences
from harness.runs import metrics
from tests.agentgyms.envs.tau2 import small_official, small_telecom

ROOT = Path(__file__).parents[1]

# --- readers of texts ----------------------------------------------------------------------------


class Reader(NamedTuple):
    """A reader of a file that users bring.

    `make` writes a file below a folder and returns it, `read` returns what the reader finds there
    as something that can be compared.
    """

    modules: tuple[str, ...]
    make: Any
    read: Any
    ends: bool = True  # whether a reader can see that the end is missing


def written(name, *rows):
    """Return a function that writes rows as JSON lines, and texts as they are."""

    def make(folder):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        texts = [
            row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows
        ]
        path.write_text("\n".join(texts) + "\n", encoding="utf-8")
        return path

    return make


def recorded(folder):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "recording.jsonl"
    with RecordEpisodes(gym.make("agentgyms/Corridor-v0"), path, actor="test") as env:
        env.reset(seed=1)
        env.step("right")
    return path


def evaluated(folder):
    path = recorded(folder)
    header, *turns = path.read_text().split("\n")
    fields = json.loads(header)
    fields["provenance"][episodes.EPISODE_KEY] = {
        "index": 0, "seed": 1, "trial": 1, "stop_reason": "terminated", "turns": 1, "preamble": "",
        "reflection": None,
    }  # fmt: skip
    rows = [json.loads(turn) for turn in turns if turn]
    rows[1]["agent"] = {
        "prompt": [], "response": "right", "tokens": [1, 1], "valid": True,
        "finished": True, "left_out": 0,
    }  # fmt: skip
    path.write_text("\n".join(map(json.dumps, [fields, *rows])) + "\n")
    return path


def a_game(folder):
    [path] = write_games("train", folder, task_ids=["small-train-pick-0000"])
    return path


def play_a_game(path):
    env = gym.make("agentgyms/ALFWorld-v0", source="official", data_path=str(path.parents[3]))
    return env.reset(seed=1)[0]


def some_products(folder):
    product = {
        "asin": "B000000001", "name": "Brass\u2028lamp", "category": "home", "query": "lamps",
        "pricing": "$5.00", "full_description": "A lamp.", "small_description": ["warm"],
        "images": [], "customization_options": {}, "product_category": "Home",
    }  # fmt: skip
    about = {"B000000001": {"attributes": ["warm"], "instruction": "a warm lamp"}}
    written("items_ins_v2_1000.json", about)(folder)
    return written("items_shuffle_1000.json", [product])(folder)


def import_products(path):
    found = datasets.import_data("webshop", path.parent, progress=False)
    return read_manifest(found)["splits"]["products"]


PAIR = {
    "task_id": "t", "messages": [{"role": "user", "content": "Open\u2028it."}], "chosen": "open",
    "rejected": "wait", "value_chosen": 1.0, "value_rejected": 0.0,
}  # fmt: skip
ROLLOUT = {"task_id": "k", "turns": [{"action": "open\u2028door", "reward": 0}]}
PEOPLE = [{"pk": "p0", "first_name": "Ann\u2028"}]


def retail_tasks(folder):
    domain = read_tau2("retail", str(folder))
    return [domain.task(task_id) for task_id in domain.tasks("base")]


def people(folder):
    for name in ("environments", "relationships", "env_agent_combos"):
        written(f"{name}.json", [{"pk": "x0"}])(folder)
    return written("agents.json", PEOPLE)(folder)


def people_in_lines(folder):
    path = people(folder)
    path.unlink()
    return written("agent_profiles.jsonl", *PEOPLE)(folder)


def zipped(folder):
    path = written("rollouts.jsonl", ROLLOUT)(folder)
    packed = path.with_suffix(".jsonl.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    return packed


SEARCHQA = "agentgyms/SearchQA-v0"
QUESTION = {"id": "1", "question": "Who\u2028?", "golden_answers": ["Ann"]}
ROOM = ("; 1", "#####", "#@$.#", "#####", "", "; 2", "######", "#@ $.#", "######")

READERS = {
    "recording": Reader(
        ("agentgyms/recording/recording_format.py",),
        recorded,
        recording_format.read,
        ends=False,  # a line that was cut is left out
    ),
    "episodes": Reader(("harness/evaluation/episodes.py",), evaluated, episodes.read),
    "rollouts": Reader(
        ("harness/rollouts/rollout_files.py",),
        written("rollouts.jsonl", ROLLOUT),
        lambda path: rollout_files.read(path).rollouts,
    ),
    "packed rollouts": Reader(
        ("harness/rollouts/rollout_files.py",),
        zipped,
        lambda path: rollout_files.read(path).rollouts,
    ),
    "preferences": Reader(
        ("harness/rollouts/search/preferences.py",),
        written("pairs.jsonl", PAIR),
        lambda path: (preferences.read(path), preferences.is_file_of(path)),
    ),
    "metrics": Reader(
        ("harness/runs/metrics.py",),
        written("metrics.jsonl", {"step": 1, "a/b": 2.0}, {"step": 2}),
        lambda path: metrics.read(path.parent),
        ends=False,  # a line that was cut is left out
    ),
    "recipe": Reader(
        ("harness/config/files.py",),
        written("own.toml", "# own", "[run]", 'name = "x\u2028"'),
        configs.read,
        ends=False,
    ),
    "result": Reader(
        ("harness/types/json_files.py", "harness/evaluation/results.py"),
        written("result.json", {"a": "\u2028"}),
        read_json,
    ),
    "game": Reader(
        (
            "agentgyms/envs/alfworld/sources.py",
            "agentgyms/envs/alfworld/official/gamefile.py",
            "agentgyms/envs/alfworld/official/dataset.py",
        ),
        a_game,
        play_a_game,
    ),
    "products": Reader(
        ("agentgyms/envs/webshop/build/json_stream.py",), some_products, import_products
    ),
    "tau2-bench's data": Reader(
        ("agentgyms/envs/tau2/official/files.py",),
        lambda folder: small_official.write(folder) / "tau2/domains/retail/tasks.json",
        lambda path: retail_tasks(path.parents[3]),
    ),
    "tau2-bench's tools": Reader(
        ("agentgyms/envs/tau2/official/telecom/schemas.py",),
        lambda folder: small_telecom.write(folder).parent / "domains/telecom/user_tools.py",
        lambda path: user_tools(path.parent),
    ),
    "people": Reader(
        ("agentgyms/envs/sotopia/official/files.py",), people, lambda p: read_tables(p.parent)
    ),
    "people in lines": Reader(
        ("agentgyms/envs/sotopia/official/files.py",),
        people_in_lines,
        lambda p: read_tables(p.parent),
    ),
    "questions": Reader(
        ("agentgyms/envs/searchqa/flashrag.py", "agentgyms/envs/searchqa/corpus.py"),
        written("nq/test.jsonl", QUESTION),
        lambda path: gym.make(
            SEARCHQA, source="flashrag", split="test", data_path=path, retriever="http://127.0.0.1:9"
        ).unwrapped.data_version,
    ),
    "corpus": Reader(
        ("agentgyms/envs/searchqa/sources.py", "agentgyms/envs/searchqa/corpus.py"),
        written("corpus.jsonl", {"id": "7", "contents": "Ann\ntext\u2028more"}),
        load_corpus,
    ),
    "levels": Reader(
        ("agentgyms/envs/sokoban/levels.py", "agentgyms/envs/sokoban/sources.py"),
        written("rooms.txt", *ROOM),
        lambda path: [
            gym.make("agentgyms/Sokoban-v0", levels=path, split="test").reset(
                options={"task_id": f"test/rooms/000{n}"}
            )[0]
            for n in (0, 1)
        ],
        ends=False,
    ),
    "AppWorld's tasks": Reader(
        ("agentgyms/envs/appworld/engine/data_roots.py",),
        written("data/tasks/t1/specs.json", {"instruction": "a\u2028b"}),
        lambda path: Roots(path.parents[3], path.parents[3]).specs("t1"),
    ),
    "AppWorld's splits": Reader(
        ("agentgyms/envs/appworld/engine/data_roots.py",),
        written("data/datasets/dev.txt", "t1:1", "t2:2"),
        lambda path: Roots(path.parents[2], path.parents[2]).tasks("dev"),
        ends=False,
    ),
}  # fmt: skip

OWN_FILES = {
    "agentgyms/data/archives.py": "see FOLDERS",
    "agentgyms/data/datasets.py": "see FOLDERS",
    "agentgyms/data/manifests.py": "manifests, which this package writes",
    "agentgyms/envs/webshop/build/official_files.py": "see FOLDERS",
    "agentgyms/envs/sotopia/sources.py": "see FOLDERS",
    "harness/preflight/recorded_files.py": "names of files alone",
    "harness/evaluation/model_source.py": "digests of a model's files",
    "harness/audit/truth_sets.py": "arrays, whose texts are JSON",
    "agentgyms/envs/webshop/goals/goal_arrays.py": "a catalogue that this package built",
    "agentgyms/envs/webshop/storage/array_files.py": "a catalogue that this package built",
    "harness/model/weights/converted/cache.py": "the cache of converted models",
    "harness/evaluation/episode_store.py": "an evaluation that goes on, with its own end repaired",
    "harness/model/adapters.py": "what peft has just written",
    "harness/runs/folder_lock.py": "locks",
    "harness/training/gateway/env_sessions.py": "what a server answers",
    "harness/reporting/leaderboard/submissions.py": "sizes of files alone",
    "harness/training/gateway/name_ledger.py": "the names that a run has written",
    "harness/evaluation/baselines/searching.py": "the recordings it has just written",
}
"""Modules that use the reader, and read nothing of their own that users bring."""

USES = re.compile(r"^from agentgyms\.data\.users_files import|import users_files", re.MULTILINE)
READS = re.compile(
    r"utf-8-sig|\.open\(encoding=|json\.load\(|tomllib\.load\(|\.read_text\(\)"
    r"|json\.loads\([^)]*\.read_(?:bytes|text)\("
)
"""Reading past the reader: a mark by hand, JSON or lines straight from a file."""


def modules():
    for package in ("agentgyms", "harness", "env_servers"):
        for path in sorted((ROOT / package).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def test_every_reader_has_a_row():
    listed = {module for reader in READERS.values() for module in reader.modules} | set(OWN_FILES)
    using = {name for name, text in modules() if USES.search(text)}
    using -= {"agentgyms/data/users_files.py"}
    assert using - listed == set(), "give each a row in READERS, or its reason in OWN_FILES"
    assert {name for name in listed if not (ROOT / name).is_file()} == set()
    assert set(OWN_FILES) - using - {"agentgyms/data/datasets.py"} == set()


def test_nothing_reads_texts_past_the_reader():
    own = {"agentgyms/data/users_files.py", "agentgyms/envs/appworld/sandbox/child/landlock.py",
           "agentgyms/envs/appworld/sandbox/child/confinement.py",
           "harness/model/chat_templates/child.py"}  # fmt: skip
    assert [name for name, text in modules() if READS.search(text) and name not in own] == []


def changed(path, change):
    packed = path.suffix == ".gz"
    content = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
    path.write_bytes(gzip.compress(change(content)) if packed else change(content))
    return path


ODDITIES = {
    "mark": lambda content: codecs.BOM_UTF8 + content,
    "CRLF": lambda content: content.replace(b"\n", b"\r\n"),
    "CR": lambda content: content.replace(b"\n", b"\r"),
    "mark and CRLF": lambda content: codecs.BOM_UTF8 + content.replace(b"\n", b"\r\n"),
    "blanks at the end": lambda content: content + b"\n \n\n",
    "no end of the last line": lambda content: content.removesuffix(b"\n"),
}


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTGYMS_DATA", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.mark.parametrize("oddity", ODDITIES)
@pytest.mark.parametrize("name", READERS)
def test_every_reader_takes_every_form_of_a_text(name, oddity, tmp_path, home):
    reader = READERS[name]
    made = reader.make(tmp_path / "plain")
    plain = reader.read(made)
    shutil.copytree(tmp_path / "plain", tmp_path / "odd")
    odd = changed(tmp_path / "odd" / made.relative_to(tmp_path / "plain"), ODDITIES[oddity])
    assert repr(reader.read(odd)).replace("/odd/", "/plain/") == repr(plain)


@pytest.mark.parametrize("name", [name for name, reader in READERS.items() if reader.ends])
def test_every_reader_names_a_file_that_was_cut(name, tmp_path, home):
    reader = READERS[name]
    path = changed(reader.make(tmp_path), lambda content: content.rstrip()[:-9])
    with pytest.raises(AgentGymsError, match=re.escape(path.name)):
        reader.read(path)


@pytest.mark.parametrize("name", READERS)
def test_every_reader_says_which_encoding_it_expects(name, tmp_path, home):
    reader = READERS[name]
    path = changed(reader.make(tmp_path), lambda content: content.decode().encode("utf-16"))
    with pytest.raises(AgentGymsError, match="UTF-8"):
        reader.read(path)


ENDLESS = {
    "products": "is read in parts, however long it is",
    "people": "is imported once, from an archive or a folder",
    "people in lines": "is imported once, from an archive or a folder",
}
"""Readers that take a file of any length, and why."""


@pytest.mark.parametrize("name", [name for name in READERS if name not in ENDLESS])
def test_every_reader_refuses_what_would_take_the_memory(name, tmp_path, home):
    reader = READERS[name]
    path = reader.make(tmp_path)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(bytes(MOST_BYTES + 1), 1))
    else:
        most = metrics.MOST_BYTES if name == "metrics" else MOST_BYTES
        os.truncate(path, path.stat().st_size + most + 1)  # takes no place on the disk
    with pytest.raises(AgentGymsError, match=rf"{path.name}.* more than \d+ MiB"):
        reader.read(path)


def test_a_device_without_an_end_is_refused():
    with pytest.raises(AgentGymsError, match="/dev/zero is damaged: it has more than 64 MiB"):
        read_json(Path("/dev/zero"))
    with pytest.raises(AgentGymsError, match="/dev/zero"):
        rollout_files.read("/dev/zero")


def test_lines_end_where_a_newline_is_meant():
    text = "a\u2028b\x0bc\x85d\x1ce\r\n\rf\n"
    assert lines_in(text) == ["a\u2028b\x0bc\x85d\x1ce", "", "f"]
    assert lines_in("") == []


# --- readers of folders --------------------------------------------------------------------------


def some_people(folder):
    for file in people(folder).parent.iterdir():
        (folder / "AgentProfile").mkdir(exist_ok=True)
        assert file.is_file()
    (folder / "agents.json").unlink()
    written("AgentProfile/p0.json", *PEOPLE)(folder)


def a_set_of_questions(folder):
    for split in ("train", "test"):
        written(f"nq/{split}.jsonl", QUESTION)(folder)


def some_levels(folder):
    written("test/rooms.txt", *ROOM)(folder)


def kept_states(path):
    return [state.path.relative_to(path) for state in sotopia_files(path).states]


def tasks_of(name, **arguments):
    return lambda path, argument: sorted(
        gym.make(f"agentgyms/{name}-v0", **arguments, **{argument: path}).unwrapped.tasks
    )


def appworld_data(folder):
    for name in ("base_dbs/app.jsonl", "api_docs/app.json", "datasets/dev.txt", "version.txt"):
        written(name, {"a": name})(folder)
    written("tasks/t1/specs.json", {"instruction": "a"})(folder)
    written("tasks/t1/dbs/app.jsonl", "x")(folder)
    written("tasks/t1/ground_truth/answer.json", 3)(folder)


def divided_data(link):
    def read(path):
        target = path.with_name("divided")
        shutil.rmtree(target, ignore_errors=True)
        divide(path, target, link=link)
        return [(name, (target / name).read_text()) for name in files_of(target)]

    return read


FOLDERS = {
    "recordings": (recorded, lambda path: [p.relative_to(path) for p in recordings_in(path)]),
    "games": (
        a_game,
        lambda path: tasks_of("ALFWorld", source="official")(path, "data_path"),
    ),
    "imported games": (
        a_game,
        lambda path: read_manifest(
            datasets.import_data("alfworld", path, allow_other=True, progress=False)
        )["files"],
    ),
    "products": (
        some_products,
        lambda path: read_manifest(datasets.import_data("webshop", path, progress=False))["splits"],
    ),
    "people": (some_people, read_tables),
    "states of people": (some_people, kept_states),
    "levels": (some_levels, lambda path: tasks_of("Sokoban", split="test")(path, "levels")),
    "questions": (
        a_set_of_questions,
        lambda path: tasks_of(
            "SearchQA", source="flashrag", split="test", retriever="http://127.0.0.1:9"
        )(path, "data_path"),
    ),
    "AppWorld's data": (appworld_data, divided_data(link=False)),
    "AppWorld's data, linked": (appworld_data, divided_data(link=True)),
}


def macos_files(folder):
    for path in list(folder.rglob("*")):
        if path.is_file():
            path.with_name(f"._{path.name}").write_bytes(b"\0\5\x16\7\0\2\0\0Mac OS X")
            path.with_name(".DS_Store").write_bytes(b"\0\0\0\1Bud1")
    for path in [folder, *filter(Path.is_dir, folder.rglob("*"))]:
        shadow = path / "__MACOSX"
        for file in list(path.iterdir()):
            if file.is_file() and not file.name.startswith("."):
                shadow.mkdir(exist_ok=True)
                (shadow / f"._{file.name}").write_bytes(b"\0\5\x16\7")


def links(folder):
    """Move each sub-folder elsewhere, and link it back."""
    elsewhere = folder.with_name("elsewhere")
    elsewhere.mkdir()
    for path in [path for path in folder.iterdir() if path.is_dir()]:
        path.rename(elsewhere / path.name)
        path.symlink_to(elsewhere / path.name)


def linked_files(folder):
    """Move each file elsewhere, and link it back."""
    elsewhere = folder.with_name("files")
    elsewhere.mkdir()
    for number, path in enumerate([path for path in folder.rglob("*") if path.is_file()]):
        path.rename(elsewhere / str(number))
        path.symlink_to(elsewhere / str(number))


def loops(folder):
    links(folder)
    for path in [folder, *(path for path in folder.iterdir() if path.is_dir())]:
        (path / "loop").symlink_to(folder)
        (path / "broken").symlink_to(folder / "nowhere")


@pytest.mark.parametrize("spoil", [macos_files, links, linked_files, loops])
@pytest.mark.parametrize("name", FOLDERS)
def test_every_reader_takes_every_form_of_a_folder(name, spoil, tmp_path, home):
    make, read = FOLDERS[name]
    folder = tmp_path / "given"
    folder.mkdir()
    make(folder)
    plain = read(folder)
    spoil(folder)
    assert read(folder) == plain


def test_archives_of_macos(tmp_path, home):
    game = a_game(tmp_path / "games")
    inside = game.relative_to(tmp_path / "games").as_posix()
    with zipfile.ZipFile(tmp_path / "games.zip", "w") as archive:
        archive.writestr(f"__MACOSX/{inside}", b"\0\5\x16\7")
        archive.write(game, inside)
        archive.writestr(f"{inside.rpartition('/')[0]}/._game.tw-pddl", b"\0\5\x16\7")
    found = datasets.import_data(
        "alfworld", tmp_path / "games.zip", allow_other=True, progress=False
    )
    assert list(read_manifest(found)["files"]) == [inside]


def test_a_folder_that_changes_is_read_anew(tmp_path):
    """Of one process: games and levels that are added, replaced in place, and taken away."""

    def seen():
        env = gym.make("agentgyms/ALFWorld-v0", source="official", data_path=tmp_path).unwrapped
        first = env.reset(options={"task_id": sorted(env.tasks)[0]})[0]
        return len(env.tasks), env.data_version, first

    game = a_game(tmp_path)
    before = seen()
    write_games("train", tmp_path, task_ids=["small-train-look-0000"])
    grown = seen()
    assert (grown[0], grown[1] != before[1]) == (2, True)
    shutil.rmtree(game.parents[1])
    assert seen()[0] == 1
    rooms = written("test/rooms.txt", *ROOM)(tmp_path)
    text, times = rooms.read_text(), rooms.stat()
    make = FOLDERS["levels"][1]

    def version():
        env = gym.make("agentgyms/Sokoban-v0", levels=tmp_path, split="test")
        return env.unwrapped.data_version

    assert len(make(tmp_path)) == 2
    first = version()
    rooms.write_text(text.replace("@$.#\n", ".$@#\n"))
    os.utime(rooms, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert version() != first


def test_games_without_their_texts_name_the_archive_that_has_them(tmp_path, home):
    game = a_game(tmp_path / "json_2.1.1")
    game.unlink()
    with pytest.raises(
        AgentGymsError, match=r"game\.tw-pddl, which .*json_2\.1\.2_tw-pddl\.zip has"
    ):
        datasets.import_data("alfworld", tmp_path, progress=False)
    with pytest.raises(
        AgentGymsError, match=r"game\.tw-pddl, which .*json_2\.1\.2_tw-pddl\.zip has"
    ):
        gym.make("agentgyms/ALFWorld-v0", source="official", data_path=tmp_path)
