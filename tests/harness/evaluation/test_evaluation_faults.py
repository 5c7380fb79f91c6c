"""Endpoints that fail: no finished episode is lost, and no fault counts as a lost game."""

import random
import time

import pytest
from chat_server import (
    ChatServer,
    body,
    broken_stream,
    choice,
    cut_body,
    empty,
    hang_up,
    huge,
    silent,
    stall,
    status,
)
from evaluation_helpers import (
    config,
    episodes,
    forgetful,
    last_message,
    result,
    served,
    walker,
    written,
)

from env_servers import Server, create_app
from harness.evaluation import running
from harness.reporting import run_and_report
from harness.types.errors import ConfigError, EvaluationStopped, ModelUnavailable

FAULTS = {
    "429": status(429, "slow down", retry_after="0"),
    "500": status(500),
    "503": status(503),
    "html": body(b"<html>Bad Gateway</html>", "text/html"),
    "no choices": body({"id": "x", "choices": []}),
    "empty": empty(),
    "silent": silent(),
    "null": choice(content=None),
    "huge": huge(400_000),
    "cut": cut_body(),
    "hang up": hang_up(),
}


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """The evaluation as it is without any fault."""
    with ChatServer(forgetful) as server:
        return run_and_report.run(served(tmp_path_factory.mktemp("calm"), server))


@pytest.mark.slow
def test_faults_of_every_kind_change_no_byte(tmp_path, calm):
    rng = random.Random(1)

    def faulty(number, _):
        return rng.choice(list(FAULTS.values())) if rng.random() < 0.15 else None

    with ChatServer(forgetful, faulty) as server:
        folder = run_and_report.run(served(tmp_path, server, service__retries=12))
        assert len(server.requests) > 60
    assert written(folder) == written(calm)
    [session] = running.results.read_json(folder / "provenance.json")["sessions"]
    assert session["model"]["retries"]


def test_broken_streams_change_no_episode(tmp_path, calm):
    faults = [broken_stream(), None, broken_stream(end=True), None, None, broken_stream(1)] * 4
    with ChatServer(forgetful, faults) as server:
        folder = run_and_report.run(
            served(tmp_path, server, service__stream=True, service__retries=12)
        )
    assert (folder / "recordings.jsonl").read_bytes() == (calm / "recordings.jsonl").read_bytes()


@pytest.mark.parametrize(
    "fault", ["500", "empty", *(pytest.param(f, marks=pytest.mark.slow) for f in ("huge", "cut"))]
)
def test_what_a_fault_spoils_is_missing_and_never_failed(tmp_path, calm, fault):
    """Whoever sees the key gets the fault, each time: the tasks with a locked door."""

    def spoiled(_, request):
        return FAULTS[fault] if "take key" in last_message(request["messages"]) else None

    with ChatServer(forgetful, spoiled) as server:
        folder = run_and_report.run(served(tmp_path, server, service__retries=0))
    result_json = result(folder)
    assert result_json["episodes"] == {"planned": 8, "finished": 4, "missing": 4}
    assert all("locked" in one["task_id"] for one in result_json["missing"])
    assert all("ModelUnavailable" in one["error"] for one in result_json["missing"])
    assert result_json["figures"]["success"]["count"] == 4
    assert result_json["figures"]["success"]["mean"] == 1.0
    assert result(calm)["figures"]["success"]["mean"] == 0.5
    assert "MISSING: 4 episodes" in (folder / "table.md").read_text()
    kept = [e for e in episodes(calm) if "locked" not in e[0]["options"]["task_id"]]
    assert episodes(folder) == kept
    with ChatServer(forgetful) as server:
        again = running.defaults.resolve(served(tmp_path, server, service__retries=1))
        run_and_report.resume(folder, again)
        turns = [len(e) - 2 for e in episodes(calm) if e not in kept]
        assert len(server.requests) == sum(turns)
    assert written(folder) == written(calm)


def test_a_dead_endpoint_stops_the_evaluation_and_it_goes_on_later(tmp_path, calm):
    def dies(number, _):
        return hang_up() if number >= 60 else None  # of about 200

    with ChatServer(forgetful, dies) as server:
        made = served(tmp_path, server, service__retries=0, run__concurrency=8, run__seeds=[0, 1])
        with pytest.raises(EvaluationStopped, match=r"8 episodes in a row .*--resume") as stopped:
            run_and_report.run(made)
        assert "ModelUnavailable" in str(stopped.value)
    folder = tmp_path / calm.name
    assert 1 <= len(episodes(folder)) < 16
    result_json = result(folder)
    assert result_json["episodes"]["missing"] == 16 - len(episodes(folder))
    assert sum("ModelUnavailable" in one["error"] for one in result_json["missing"]) >= 8
    with ChatServer(forgetful) as server:
        run_and_report.resume(
            folder, running.defaults.resolve(served(tmp_path, server, run__seeds=[0, 1]))
        )
    assert result(folder)["episodes"] == {"planned": 16, "finished": 16, "missing": 0}


def test_nobody_there_is_said_at_once(tmp_path):
    with ChatServer(walker) as server:
        url, model = server.url, server.model
    made = config(tmp_path, model__name=model, model__url=url, service__retries=0)
    with pytest.raises(ModelUnavailable):
        run_and_report.run(made)
    assert not (tmp_path / "corridor-valid_seen-react-scripted").exists()


def test_not_one_episode_is_no_result(tmp_path):
    with ChatServer(walker, lambda number, body: status(500)) as server:
        made = served(tmp_path, server, service__retries=0, run__tasks=2)
        with pytest.raises(EvaluationStopped, match="not one episode could be finished"):
            run_and_report.run(made)
    with ChatServer(walker) as server:
        folder = run_and_report.run(served(tmp_path, server, run__tasks=2))
    assert result(folder)["episodes"]["finished"] == 2


def test_a_refusal_stops_at_once_and_keeps_what_was_finished(tmp_path):
    def expires(number, _):
        return status(401, "key expired") if number >= 20 else None

    with ChatServer(forgetful, expires) as server:
        made = served(tmp_path, server, run__concurrency=1)
        with pytest.raises(ConfigError, match=r"key.*episodes are finished and safe.*--resume"):
            run_and_report.run(made)
        assert len(server.requests) == 21


def test_a_reflection_that_fails_makes_the_unit_missing(tmp_path):
    def spoiled(_, request):
        return status(500) if "<action>" not in last_message(request["messages"]) else None

    with ChatServer(forgetful, spoiled) as server:
        made = served(tmp_path, server, service__retries=0, agent__kind="reflexion")
        folder = run_and_report.run(made)
    result_json = result(folder)
    assert result_json["episodes"] == {"planned": 8, "finished": 4, "missing": 4}
    assert {(one["trial"], one["task_id"].split("-")[0]) for one in result_json["missing"]} == {
        (1, "valid_seen/locked")
    }
    assert result_json["figures"]["success"]["mean"] == 1.0
    assert {e[0]["provenance"]["evaluation"]["trial"] for e in episodes(folder)} == {1}


def test_a_server_of_environments_that_dies_loses_no_finished_episode(tmp_path):
    with Server(create_app("agentgyms/Corridor-v0")) as server:
        remote = {"url": server.url}
        folder = run_and_report.run(
            config(tmp_path, model__name="expert", env__kwargs=remote, run__tasks=4)
        )
        assert result(folder)["figures"]["success"]["mean"] == 1.0
        (folder / "result.json").unlink()
        lines = (folder / "recordings.jsonl").read_bytes().splitlines(keepends=True)
        (folder / "recordings.jsonl").write_bytes(b"".join(lines[:10]))
        kept = len(lines[:10])
        assert kept == 10
        run_and_report.resume(folder)
        assert (folder / "recordings.jsonl").read_bytes() == b"".join(lines)
    local = run_and_report.run(config(tmp_path / "local", model__name="expert", run__tasks=4))
    assert (local / "recordings.jsonl").read_bytes() == b"".join(lines)


def test_a_stall_is_waited_for_no_longer_than_it_says(tmp_path):
    began = time.monotonic()
    with ChatServer(walker, [None, stall(), None]) as server:
        folder = run_and_report.run(served(tmp_path, server, run__tasks=2, service__timeout_s=1.0))
    assert result(folder)["episodes"]["missing"] == 0
    assert time.monotonic() - began < 45
