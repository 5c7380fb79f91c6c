"""Files that an earlier version wrote are read by this one: see `tests/golden/old/make.py`."""

import gzip
import hashlib
import json
import re
import shutil

import gymnasium as gym
import pytest
from chat_server import ChatServer
from old_files import (
    ENVIRONMENTS,
    OFFICIAL,
    OLD,
    SEED,
    env_id,
    evaluation_words,
    forgetful,
    load_json,
    proxy,
    run,
    settings,
    unpack,
)

from agentgyms.recording import recorder

ADDED = ("deadlocked",)
"""Metrics that environments have gained since the files were written."""


def old_text(name):
    """Return a kept text."""
    return gzip.decompress((OLD / name).read_bytes()).decode()


def written_again(file, name, kwargs, folder):
    """Return an old recording and one of the same episode written now, without provenance."""
    new = folder / "now.jsonl"
    run("agentgyms", "record", env_id(name), new, *settings(kwargs), "--seed", SEED)
    text = re.sub(rf',"({"|".join(ADDED)})":[^,}}]+', "", new.read_text())
    lines = file.read_text().splitlines(), text.splitlines()
    headers = [json.loads(first) for first, *_ in lines]
    for header in headers:
        assert header.pop("provenance")["actor"] == "expert"
    return [[json.dumps(header), *rest] for header, (_, *rest) in zip(headers, lines, strict=True)]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_recordings_replay_and_are_written_as_they_were(name, tmp_path):
    file = unpack(f"recording-{name}.jsonl.gz", tmp_path)
    (episode,) = recorder.read(file)
    assert episode.header["env_id"] == env_id(name)
    assert (episode.header["kwargs"], episode.header["seed"]) == (ENVIRONMENTS[name], SEED)
    assert episode.turns[-1].info["success"]
    told = run("agentgyms", "replay", file)
    assert told == f"1 episodes, {len(episode.turns)} states agree\n"
    before, now = written_again(file, name, ENVIRONMENTS[name], tmp_path)
    assert now == [known_alone(line) for line in before]


def known_alone(text):
    """Return JSON as it is written since unknown figures are left out, which were null before."""

    def known(metrics):
        shorter = re.sub(r',\s*"\w+":\s*null', "", metrics[0])
        return re.sub(r'"\w+":\s*null(,\s*)?', "", shorter)

    return re.sub(r'"metrics":\s*\{[^{}]*\}', known, text)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_snapshots_are_restored_and_written_as_they_were(name):
    kept = load_json("snapshots.json.gz")[name]
    snapshot = kept["snapshot"].encode()
    env = gym.make(env_id(name), **ENVIRONMENTS[name]).unwrapped
    env.restore(snapshot)
    assert env.snapshot().decode() == known_alone(kept["snapshot"])
    for turn in kept["rest"]:
        _, reward, terminated, truncated, info = env.step(turn["action"])
        reached = {"action": turn["action"], "reward": reward, "over": terminated or truncated}
        assert reached | {key: info[key] for key in turn.keys() - reached.keys()} == turn
    env.close()
    assert kept["rest"][-1]["over"]


# --- data sets ----------------------------------------------------------------------------------


@pytest.fixture
def data(tmp_path, monkeypatch):
    """The folder of data sets as an earlier version left it."""
    folder = unpack("data.tar.gz", tmp_path)
    monkeypatch.setenv("AGENTGYMS_DATA", str(folder))
    return folder


def test_data_sets_are_whole(data):
    for name in ("webshop", "alfworld"):
        assert str(data) in run("agentgyms", "data", "verify", name)
    listed = json.loads(run("agentgyms", "data", "list", "--json"))
    assert [listed[name]["damage"] for name in ("webshop", "alfworld")] == ["", ""]
    assert [part[0] for part in listed["alfworld"]["parts"].values()] == [2]
    assert {split: part[0] for split, part in listed["webshop"]["parts"].items()}


@pytest.mark.parametrize("name", OFFICIAL)
def test_stored_data_are_played_as_they_were(name, data, tmp_path):
    file = unpack(f"official-{name}.jsonl.gz", tmp_path)
    (episode,) = recorder.read(file)
    assert episode.turns[-1].info["success"]
    assert run("agentgyms", "replay", file).endswith(f"{len(episode.turns)} states agree\n")
    before, now = written_again(file, name, OFFICIAL[name], tmp_path)
    assert now == [known_alone(line) for line in before]


# --- evaluations --------------------------------------------------------------------------------


@pytest.fixture
def evaluations(tmp_path):
    """The folders of two evaluations, by their agent."""
    return {name: unpack(f"evaluation-{name}.tar.gz", tmp_path) for name in ("react", "reflexion")}


@pytest.mark.parametrize("form", ["csv", "latex", "markdown"])
def test_evaluations_are_reported_as_they_were(form, evaluations):
    told = run("harness", "report", *evaluations.values(), "--format", form)
    if form == "csv":  # whose tasks they were is said since
        told = re.sub(r",(data)?$", "", told, flags=re.MULTILINE)
    assert told == old_text(f"report.{form}.gz")


def test_evaluations_have_pages_and_are_compared(evaluations, tmp_path):
    page = tmp_path / "page.html"
    told = run("harness", "report", *evaluations.values(), "--paired", "--html", page)
    assert "difference of score: +0.0 points" in told
    assert "evaluation-react" in page.read_text()


def contents(folder):
    """Return what two equal evaluations have in common: all but the versions that ran."""
    result = json.loads((folder / "result.json").read_text())
    recordings = folder / "recordings.jsonl"
    digest = hashlib.sha256(recordings.read_bytes()).hexdigest()
    assert result.pop("recordings") == {"file": recordings.name, "sha256": digest}
    for key in ("versions", "later_versions", "data_source"):
        result.pop(key, None)
    for key in ("samples", "costs"):  # later than the kept ones, and so are their tables
        result["figures"].pop(key, None)
    table = re.sub(r"\| Samples .*?\n\n", "", (folder / "table.md").read_text(), flags=re.DOTALL)
    lines = []
    for line in recordings.read_text().splitlines():
        value = json.loads(line)
        if "format" in value:
            value["provenance"] = value["provenance"]["evaluation"]
            line = json.dumps(value)
        lines.append(line)
    return [result, lines, table]


class Silent:
    """A function of messages that answers as `forgetful` does and counts."""

    def __init__(self):
        self.count = 0

    def __call__(self, messages):
        self.count += 1
        return forgetful(messages)


@pytest.fixture
def model(monkeypatch, tmp_path):
    """A model at the address of the old evaluations, and a working folder."""
    (tmp_path / "now").mkdir()
    monkeypatch.chdir(tmp_path / "now")
    answer = Silent()
    with ChatServer(answer) as server:
        for name, value in proxy(server).items():
            monkeypatch.setenv(name, value)
        yield answer


@pytest.mark.parametrize("agent", ["react", "reflexion"])
def test_kept_answers_are_found_and_make_the_same_evaluation(agent, evaluations, model, tmp_path):
    shutil.copy(unpack("answers.sqlite.gz", tmp_path), tmp_path / "now")
    run("harness", *evaluation_words(agent))
    assert model.count == 0, "an answer that is kept was asked for"
    assert contents(tmp_path / "now/evaluations" / agent) == contents(evaluations[agent])


@pytest.mark.parametrize("agent", ["react", "reflexion"])
def test_an_interrupted_evaluation_goes_on(agent, evaluations, model, tmp_path):
    begun = tmp_path / "now/evaluations" / agent
    shutil.copytree(evaluations[agent], begun)
    for name in ("result.json", "table.md"):
        (begun / name).unlink()
    lines = (begun / "recordings.jsonl").read_text().splitlines(keepends=True)
    headers = [number for number, line in enumerate(lines) if "format" in json.loads(line)]
    (begun / "recordings.jsonl").write_text("".join(lines[: headers[3]]))
    run("harness", "eval", "--resume", begun)
    assert 0 < model.count < len(lines)
    assert contents(begun) == contents(evaluations[agent])
