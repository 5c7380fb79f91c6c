"""The leaderboard: what replays is listed with its score, and nothing else is."""

import hashlib
import json
import os
import re
import shutil
import tracemalloc
from dataclasses import replace

import pytest
from chat_server import ChatServer
from click.testing import CliRunner
from evaluation_helpers import config, forgetful, served

from harness.cli.main import main
from harness.evaluation import episode_store, episodes, figures
from harness.reporting import run_and_report
from harness.reporting.leaderboard import boards, site, submissions
from harness.types.errors import ResultError

LABEL = "generated tasks, not the benchmark"


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """Two evaluations of ALFWorld's generated tasks: the expert's, and one of random actions."""
    folder = tmp_path_factory.mktemp("played")
    more = {"env__id": "ALFWorld", "env__split": "sample", "run__seeds": [0]}
    for name in ("expert", "random"):
        run_and_report.run(config(folder, model__name=name, run__name=name, **more))
    return folder


@pytest.fixture
def folder(played, tmp_path):
    """A folder of one's own with both."""
    shutil.copytree(played, tmp_path / "all")
    return tmp_path / "all"


def leaderboard(folder):
    return site.build(folder, folder.parent / "site")


def reasons(made):
    return {one.label: one.reason for one in made.not_listed}


def labels(made):
    return [entry.label for board in made.boards for entry in board.entries]


def counted_again(folder, change):
    """Change the lines of recordings, and the result so that it agrees with them."""
    path = folder / episode_store.RECORDINGS
    values = [json.loads(line) for line in path.read_text().splitlines()]
    change(values)
    path.write_text("".join(f"{json.dumps(value)}\n" for value in values))
    content = json.loads((folder / "result.json").read_text())
    content["recordings"]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    found = episodes.read(path)
    content |= json.loads(json.dumps(figures.count(content, content["seeds"], found)))
    (folder / "result.json").write_text(json.dumps(content))


def in_result(folder, change):
    content = json.loads((folder / "result.json").read_text())
    change(content)
    (folder / "result.json").write_text(json.dumps(content))


def test_what_replays_is_listed_with_its_score(folder):
    made = leaderboard(folder)
    assert made.not_listed == []
    (board,) = made.boards
    assert [entry.label for entry in board.entries] == ["expert", "random"]
    assert board.title == f"ALFWorld sample, {LABEL}"
    assert board.entries[0].departures == ()
    for entry in board.entries:
        result = json.loads((folder / entry.label / "result.json").read_text())
        assert entry.success == result["figures"]["success"]["mean"]
        assert entry.episodes == 12
    (difference,) = board.differences()
    assert difference[:2] == ["random", "expert"]
    shown = (folder.parent / "site" / "index.html").read_text()
    assert "100.0" in shown
    assert shown.count("#episode=") == 24
    for entry in board.entries:
        assert LABEL in (folder.parent / "site" / entry.page).read_text()


def test_equal_results_share_a_place(folder):
    best, other = leaderboard(folder).boards[0].entries
    twins = [replace(best, submission=replace(best.submission, label=name)) for name in "ab"]
    (board,) = boards.build([other, *twins])
    assert [entry.label for entry in board.entries] == ["a", "b", "random"]
    assert board.places == [1, 1, 3]
    shown = site.render(site.Site([board], []))
    assert re.findall(r'<td class="place">(\d+)</td>', shown) == ["1", "1", "3"]


def forge_scores(values):
    for value in values:
        if "info" in value:
            value["info"]["score"] = 1.0


def forge_wins(values):
    for value in values:
        if "info" in value:
            value["info"]["success"] = True


def change_an_action(values):
    turn = next(value for value in values if value.get("turn") == 2)
    turn["action"] = "look" if turn["action"] != "look" else "inventory"


def take_other_rooms(values):
    for value in values:
        if "format" in value:
            value["kwargs"]["rooms"] = "large"


def take_other_seeds(values):
    for value in values:
        if "format" in value:
            value["seed"] += 1


def show_solutions(values):
    for value in values:
        if "format" in value:
            value["kwargs"]["oracle"] = True


def leave_an_episode(values):
    del values[: next(i for i, value in enumerate(values) if i and "format" in value)]


def measure_more(values):
    for value in values:
        if "info" in value:
            value["info"]["metrics"]["goal"] = 10.0


def go_on_after_the_end(values):
    header, end = values[0], next(i for i, value in enumerate(values) if i and "format" in value)
    header["provenance"]["evaluation"]["turns"] += 1
    values.insert(end, {**values[end - 1], "turn": values[end - 1]["turn"] + 1})


FORGED = {
    "more turns": (go_on_after_the_end, "does not replay: step was called after the end of"),
    "scores": (forge_scores, "does not replay: turn 0: info['score'] was recorded as 1.0"),
    "a metric": (measure_more, "does not replay: turn 0: info['metrics'] was recorded as"),
    "wins": (forge_wins, "does not replay: turn 0: info['success'] was recorded as True"),
    "an action": (change_an_action, "does not replay: turn 2"),
    "arguments": (take_other_rooms, "is no episode of this evaluation: arguments"),
    "seeds": (take_other_seeds, "is no episode of this evaluation: seed"),
    "solutions": (show_solutions, "is no episode of this evaluation: arguments"),
    "less": (leave_an_episode, "episodes.finished is 12 in place of 11"),
}


@pytest.mark.parametrize("what", FORGED)
def test_forged_recordings_are_not_listed(folder, what):
    change, said = FORGED[what]
    counted_again(folder / "random", change)
    made = leaderboard(folder)
    assert labels(made) == ["expert"]
    assert said in reasons(made)["random"]
    assert said.partition(":")[0] in (folder.parent / "site" / "index.html").read_text()


def test_what_later_versions_measure_besides_is_no_difference(folder):
    def measure_less(values):
        for value in values:
            if "info" in value:
                value["info"]["metrics"].popitem()

    counted_again(folder / "random", measure_less)
    assert labels(leaderboard(folder)) == ["expert", "random"]


def forge_the_mean(content):
    content["figures"]["success"]["mean"] = 0.99


def call_it_official(content):
    content["data_source"] = "official"


def call_other_data(content):
    content["environment"]["data_version"] = "official-0123456789abcdef"


def ask_a_judge(content):
    content["environment"] |= {"id": "agentgyms/SOTOPIA-v0", "kwargs": {"judge": "gpt-4o@http://x"}}
    content["judge"] = "gpt-4o"


def import_a_module(content):
    content["environment"]["id"] = "os:agentgyms/ALFWorld-v0"


def read_a_file(content):
    content["environment"]["kwargs"] = {"source": "official", "data_path": "/etc"}


def take_an_engine(content):
    content["environment"]["kwargs"]["backend"] = "textworld"


def cost_much(content):
    content["config"]["env"]["max_turns"] = 10**9


def take_few_turns(content):
    content["environment"]["max_turns"] = 3


def try_without_end(content):
    content["agent"]["trials"] = 10**9


def seed_without_end(content):
    content["seeds"] = list(range(101))


EDITED = {
    "trials": (try_without_end, "it names 1000000000 trials of a task: expected 1 to 100"),
    "seeds": (seed_without_end, "it names 101 seeds: at most 100 are counted"),
    "mean": (forge_the_mean, "does not agree with itself or its recordings"),
    "source": (call_it_official, "it names the data 'official', which is 'generated'"),
    "data": (call_other_data, "it is of other data: official-0123456789abcdef"),
    "judge": (
        ask_a_judge,
        "its judge is the model gpt-4o: what a model answered cannot be replayed",
    ),
    "module": (import_a_module, "would import the module 'os'"),
    "file": (read_a_file, "the recording gives data_path='/etc'"),
    "engine": (take_an_engine, ""),  # whatever is installed: it is no episode of such an engine
    "cost": (cost_much, "max_turns 1000000000 is too large"),
    "turns": (take_few_turns, "it names 3 turns, and its environment has 50"),
}


@pytest.mark.parametrize("what", EDITED)
def test_edited_results_are_not_listed(folder, what):
    change, said = EDITED[what]
    in_result(folder / "random", change)
    made = leaderboard(folder)
    assert labels(made) == ["expert"]
    assert said in reasons(made)["random"]


def test_a_scripted_customer_replays_and_a_model_does_not(tmp_path):
    given = {"env__id": "Tau2", "env__split": "sample", "run__seeds": [0], "run__tasks": 3}
    made = config(tmp_path / "all", model__name="expert", run__name="expert", **given)
    folder = run_and_report.run(made)
    assert labels(leaderboard(folder.parent)) == ["expert"]

    def ask_a_model(content):
        kwargs = {"domain": "retail", "customer": "gpt-4.1@http://x"}
        content["environment"]["kwargs"], content["partner"] = kwargs, "gpt-4.1"

    in_result(folder, ask_a_model)
    said = "its customer is the model gpt-4.1: what a model answered cannot be replayed"
    assert said in reasons(leaderboard(folder.parent))["expert"]


def test_missing_files_links_and_devices_are_not_listed(folder):
    shutil.copytree(folder / "random", folder / "no-recordings")
    (folder / "no-recordings/recordings.jsonl").unlink()
    shutil.copytree(folder / "random", folder / "no-result")
    (folder / "no-result/result.json").unlink()
    shutil.copytree(folder / "random", folder / "linked")
    (folder / "linked/recordings.jsonl").unlink()
    (folder / "linked/recordings.jsonl").symlink_to("/etc/passwd")
    shutil.copytree(folder / "random", folder / "pipe")
    (folder / "pipe/result.json").unlink()
    os.mkfifo(folder / "pipe/result.json")
    (folder / "elsewhere").symlink_to(folder / "expert")
    made = leaderboard(folder)
    assert labels(made) == ["expert", "random"]
    assert reasons(made) == {
        "linked": "recordings.jsonl is a link, a folder or a device: expected a plain file",
        "no-recordings": "recordings.jsonl is missing",
        "no-result": "result.json is missing",
        "pipe": "result.json is a link, a folder or a device: expected a plain file",
    }


def add_blanks(values):
    for value in values:
        if value.get("action"):
            value["action"] = f" {value['action']}"


def tell_another_story(values):
    for value in values:
        if "provenance" in value:
            value["provenance"]["evaluation"]["preamble"] = "I am another one."
        if value.get("agent", {}).get("answer"):
            value["agent"]["answer"] = "I thought of it myself."


def turn_around(values):
    starts = [place for place, value in enumerate(values) if "format" in value]
    episodes = [values[a:b] for a, b in zip(starts, [*starts[1:], len(values)], strict=True)]
    values[:] = [line for episode in reversed(episodes) for line in episode]


@pytest.mark.parametrize("change", [list, add_blanks, tell_another_story, turn_around])
def test_copies_stand_in_one_entry_with_all_names(folder, change):
    for name in ("another", "mine"):
        shutil.copytree(folder / "expert", folder / name)
        counted_again(folder / name, change)
    made = leaderboard(folder)
    told = "its episodes are those of another, which is listed with the names of all copies"
    assert reasons(made) == {"expert": told, "mine": told}
    entries = {entry.label: entry.copies for board in made.boards for entry in board.entries}
    assert entries == {"another": ("expert", "mine"), "random": ()}
    shown = (folder.parent / "site/index.html").read_text()
    assert "and <bdi>expert</bdi> and <bdi>mine</bdi>: the same episodes" in shown
    done = CliRunner().invoke(
        main, ["leaderboard", str(folder), "--output", str(folder.parent / "site")]
    )
    assert "(another, expert, mine)" in done.output


def test_long_lines_and_long_episodes_take_no_memory(folder):
    """A line of empty lists takes twenty times its length, and a recording may have 4 GiB."""
    for name in ("line", "episode"):
        shutil.copytree(folder / "random", folder / name)
        path = folder / name / episode_store.RECORDINGS
        last = json.loads(path.read_text().splitlines()[-1])
        long = {"answer": "x" * (1 << 20)}
        with path.open("a") as file:
            if name == "line":
                file.write(f'{{"turn": [{"[]," * (40 << 20)}[]]}}\n')
            for turn in range(last["turn"] + 1, last["turn"] + 71) if name == "episode" else ():
                file.write(f"{json.dumps({**last, 'turn': turn, 'agent': long})}\n")
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        in_result(folder / name, lambda content, d=digest: content["recordings"].update(sha256=d))
    tracemalloc.start()
    try:
        found = reasons(leaderboard(folder))
        assert tracemalloc.get_traced_memory()[1] < 1 << 30
    finally:
        tracemalloc.stop()
    assert "the line has more than 16 MiB, as no recording has" in found["line"]
    assert "the episode has more than 64 MiB, as no recording has" in found["episode"]


def test_strangers_names_and_files_are_text_and_nothing_else(folder, tmp_path):
    hostile = "<script>alert(1)<-script>\u202e\x1b[31m"
    (folder / "random").rename(folder / hostile)
    in_result(folder / hostile, lambda content: content["versions"].update(revision="<b>x"))
    for number, text in enumerate(["[]", "{", "nul", '{"format": "agentgyms-evaluation-1"}']):
        (folder / f"damaged-{number}").mkdir()
        (folder / f"damaged-{number}" / "result.json").write_text(text)
        (folder / f"damaged-{number}" / "recordings.jsonl").write_text(text)
    done = CliRunner().invoke(
        main, ["leaderboard", str(folder), "--output", str(tmp_path / "site")]
    )
    assert done.exit_code == 0, done.output
    assert done.output.startswith("2 of 6 evaluations listed")
    index = (tmp_path / "site/index.html").read_text()
    assert "<script>alert" not in index
    assert "&lt;script&gt;alert" in index
    assert not any(c in index + done.output for c in "\u202e\x1b")
    assert str(folder) not in index + done.output
    pages = sorted(path.name for path in (tmp_path / "site/evaluations").iterdir())
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-.") for name in pages)


def files(folder):
    return {
        path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def test_equal_input_gives_equal_bytes_and_a_new_site_replaces_the_old_one(folder, tmp_path):
    site.build(folder, tmp_path / "one")
    moved = shutil.copytree(folder, tmp_path / "another place")
    site.build(moved, tmp_path / "two")
    assert files(tmp_path / "one") == files(tmp_path / "two")
    shutil.rmtree(moved / "random")
    site.build(moved, tmp_path / "two")
    assert len(list((tmp_path / "two/evaluations").iterdir())) == 1
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("keep me")
    with pytest.raises(ResultError, match="holds something else than a site"):
        site.build(folder, tmp_path / "mine")
    assert files(tmp_path / "mine")


def test_an_empty_folder_is_told(tmp_path):
    with pytest.raises(ResultError, match="holds no evaluation"):
        submissions.find(tmp_path)
    with pytest.raises(ResultError, match="is no folder"):
        submissions.find(tmp_path / "nothing")


def test_departures_from_the_protocol_have_a_table_of_their_own(tmp_path):
    base = {"env__id": "Corridor", "env__split": "sample", "model__name": "random"}
    for name, more in {
        "as-it-is": {},
        "seeds": {"run__seeds": [1, 2]},
        "few": {"run__tasks": 2, "env__max_turns": 7},
    }.items():
        run_and_report.run(config(tmp_path / "all", run__name=name, **base, **more))
    made = site.build(tmp_path / "all", tmp_path / "site")
    found = {board.entries[0].label: board.entries[0].departures for board in made.boards}
    assert found == {
        "as-it-is": (),
        "seeds": ("seeds 1, 2",),
        "few": ("2 of 4 tasks", "at most 7 turns"),
    }
    assert made.boards[0].entries[0].label == "as-it-is", "the protocol stands first"
    shown = (tmp_path / "site/index.html").read_text()
    assert "Departs from the protocol:</strong> 2 of 4 tasks; at most 7 turns." in shown


def test_models_stand_with_what_they_say_of_themselves(tmp_path):
    base = {"env__id": "Corridor", "env__split": "sample", "service__price_prompt": 2.0}
    with ChatServer(forgetful, model="qwen") as server:
        for kind, more in {
            "react": {},
            "reflexion": {"agent__trials": 3},
            "warm": {"agent__kind": "react", "sampling__temperature": 0.7, "agent__examples": 1},
        }.items():
            settings = {"agent__kind": kind, **base, "service__price_response": 8.0, **more}
            run_and_report.run(served(tmp_path / "all", server, run__name=kind, **settings))
    in_result(
        tmp_path / "all" / "react",
        lambda content: content["agent"].update(prompt_versions={"default/think": "0123456789ab"}),
    )
    made = site.build(tmp_path / "all", tmp_path / "site")
    assert made.not_listed == []
    found = {board.entries[0].label: board.entries[0].departures for board in made.boards}
    unknown = "revision of the model unknown"
    assert found["react"] == ("prompt default/think 0123456789ab", unknown)
    assert found["reflexion"] == ("3 trials of a task", unknown)
    assert found["warm"] == ("examples 1", "temperature 0.7", unknown)
    copies = {board.entries[0].label: board.entries[0].copies for board in made.boards}
    assert copies == {"react": ("warm",), "warm": ("react",), "reflexion": ()}, "in other tables"
    shown = (tmp_path / "site/index.html").read_text()
    assert re.search(r'data-title="Tokens">[\d,]+<', shown)
    assert re.search(r'data-title="Cost">\d+\.\d\d<', shown)
