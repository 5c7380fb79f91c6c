"""Evaluations that were interrupted: nothing finished is lost or played again."""

import os
import random
import re
import shutil
import signal
import subprocess
import time

import pytest
from chat_server import ChatServer, status
from click.testing import CliRunner
from evaluation_helpers import (
    config,
    episodes,
    forgetful,
    last_message,
    result,
    served,
    started,
    walker,
    written,
)
from lock_holder import locked

from harness.cli.evaluate import evaluate
from harness.evaluation import folders, play_units, running
from harness.evaluation.episode_store import Store
from harness.reporting import run_and_report
from harness.types.errors import ConfigError, EvaluationStopped, FolderInUse, ResultError

EVALUATE = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
from harness.cli.evaluate import evaluate
evaluate(["--env", "Corridor", "--model", "scripted", "--url", sys.argv[2], "--agent", "reflexion",
          "--seeds", "0,1", "--set", f"run.output={sys.argv[1]}", "--set", "run.concurrency=2",
          "--set", "service.cache=false"])
"""


def reflecting(tmp_path, server, **settings):
    """The settings of `EVALUATE`."""
    return served(
        tmp_path, server, run__seeds=[0, 1], run__concurrency=2, agent__kind="reflexion", **settings
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An evaluation that nobody interrupted."""
    with ChatServer(forgetful) as server:
        return run_and_report.run(reflecting(tmp_path_factory.mktemp("whole"), server))


def units(folder):
    """Return seed and task of each unit in a file that may be cut off, by the headers alone."""
    text = (folder / "recordings.jsonl").read_text()
    return set(re.findall(r'"evaluation":{"index":(\d+),"seed":(\d+)', text))


@pytest.mark.parametrize(
    "kill", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_a_killed_evaluation_goes_on_to_the_same_bytes(tmp_path, whole, kill):
    with ChatServer(forgetful, latency_s=0.004) as server:
        child = started(EVALUATE, tmp_path, server.url, cwd=tmp_path, stderr=subprocess.PIPE)
        folder = tmp_path / whole.name
        deadline = time.monotonic() + 120
        while not (folder / "recordings.jsonl").exists() or len(units(folder)) < 6:  # of 16
            assert child.poll() is None, child.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        os.kill(child.pid, kill)
        _, stderr = child.communicate(timeout=60)
        assert child.returncode == (130 if kill == signal.SIGINT else -kill)
        if kill == signal.SIGINT:
            assert "Traceback" not in stderr
            assert f"go on with: harness eval --resume {folder}" in stderr
        assert 6 <= len(units(folder)) < 16
        assert not (folder / "result.json").exists()
        finished = Store(folder, 3)
        before = {(s, i) for s in (0, 1) for i in range(8) if (s, i) in finished}
        before_resume = len(server.requests)
        assert run_and_report.resume(folder) == folder
        assert written(folder) == written(whole)
        again = len(server.requests) - before_resume
        left = [e for e in episodes(folder) if place(e) not in before]
        reflections = sum(e[0]["provenance"]["evaluation"]["reflection"] is not None for e in left)
        assert again == sum(len(e) - 2 for e in left) + reflections


def place(episode):
    about = episode[0]["provenance"]["evaluation"]
    return about["seed"], about["index"]


def test_a_file_cut_off_anywhere_loses_its_last_unit_alone(tmp_path, whole):
    content = (whole / "recordings.jsonl").read_bytes()
    complete = Store(whole, 3)
    ends = sorted(complete.end(place) for place in ((s, i) for s in (0, 1) for i in range(8)))
    assert ends[-1] == len(content)
    rng = random.Random(0)
    near = [end + offset for end in ends for offset in (-1, 0, 1, 12)]
    for cut in [0, 1, *near, *(rng.randrange(len(content)) for _ in range(60))]:
        if cut > len(content):
            continue
        (tmp_path / "recordings.jsonl").write_bytes(content[:cut])
        store = Store(tmp_path, 3)
        kept = [end for end in ends if end <= cut]
        assert len(store) == len(kept), cut
        left = (tmp_path / "recordings.jsonl").read_bytes()
        assert left == content[: kept[-1] if kept else 0], cut


def test_garbage_at_the_end_is_dropped_and_elsewhere_refused(tmp_path, whole):
    content = (whole / "recordings.jsonl").read_bytes()
    file = tmp_path / "recordings.jsonl"
    file.write_bytes(content + b"\0" * 4096)
    assert len(Store(tmp_path, 3)) == 16
    assert file.read_bytes() == content
    lines = content.splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:3] + lines[4:]))
    with pytest.raises(ResultError, match="damaged"):
        Store(tmp_path, 3)
    file.write_bytes(content * 2)
    with pytest.raises(ResultError, match="twice"):
        Store(tmp_path, 3)


def test_what_is_finished_is_not_overwritten(tmp_path):
    made = config(tmp_path, model__name="expert")
    folder = run_and_report.run(made)
    with pytest.raises(ConfigError, match=r"holds an evaluation already: delete .* --name"):
        run_and_report.run(made)
    before = written(folder)
    (folder / "result.json").unlink()
    with pytest.raises(ConfigError, match="has not ended: go on with --resume"):
        run_and_report.run(made)
    run_and_report.resume(folder)
    assert written(folder) == before


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text("{}")
    with pytest.raises(ConfigError, match="something else"):
        run_and_report.run(config(tmp_path, model__name="expert", run__name="mine"))
    assert (tmp_path / "mine" / "config.json").read_text() == "{}"
    with pytest.raises(ResultError, match=r"config\.json is damaged: it lacks run, env"):
        run_and_report.resume(tmp_path / "mine")
    with pytest.raises(ResultError, match=r"config\.json"):
        run_and_report.resume(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


def test_a_resumed_evaluation_keeps_its_settings(tmp_path):
    with ChatServer(walker) as server:
        made = served(tmp_path, server, sampling__temperature=0.5)
        folder = run_and_report.run(made)
        other = served(tmp_path, server, sampling__temperature=0.7, agent__examples=1)
        with pytest.raises(ConfigError) as refused:
            run_and_report.resume(folder, running.defaults.resolve(other))
        assert "agent.examples was 0, now 1" in str(refused.value)
        assert "sampling.temperature was 0.5, now 0.7" in str(refused.value)
        before = written(folder)
        gentler = served(
            tmp_path, server, sampling__temperature=0.5, run__concurrency=1, service__retries=9
        )
        run_and_report.resume(folder, running.defaults.resolve(gentler))
        assert written(folder) == before


def test_another_model_under_the_same_name_is_refused(tmp_path, policy):
    policy.save(tmp_path / "model")
    made = config(
        tmp_path / "out",
        model__name=str(tmp_path / "model"),
        model__device="cpu",
        agent__style="compact",
        env__max_turns=1,
        sampling__max_tokens=2,
    )
    folder = run_and_report.run(made)
    weights = tmp_path / "model" / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(ConfigError, match=r"model\.revision was"):
        run_and_report.resume(folder)


def test_one_process_at_a_time(tmp_path):
    folder = run_and_report.run(config(tmp_path, model__name="expert"))
    with locked(folder) as pid, pytest.raises(FolderInUse, match=rf"by process {pid} on .*, since"):
        run_and_report.resume(folder)
    run_and_report.resume(folder)


def test_an_evaluation_that_was_taken_over_writes_nothing_more(tmp_path):
    """As on a file system whose locks hold on one machine only."""
    folder = tmp_path / "corridor-valid_seen-react-scripted"
    other = '{"host": "node-2", "pid": 7, "started": "2026-01-01T00:00:00Z"}'

    def taken_over(number, _):
        if number == 20:
            (folder / ".lock").write_text(other)

    with ChatServer(walker, taken_over) as server:
        with pytest.raises(FolderInUse, match="taken over by process 7 on node-2"):
            run_and_report.run(served(tmp_path, server, run__concurrency=1))
        assert len(server.requests) < 45
        assert (folder / ".lock").read_text() == other
        run_and_report.resume(folder)
    assert result(folder)["episodes"]["missing"] == 0


FULL = """
import resource, sys
from harness.cli.main import run
limit = int(sys.argv.pop())
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
run()
"""


def test_a_full_disk_stops_the_evaluation_and_keeps_what_is_whole(tmp_path):
    """A file may only become so long; of the unit that goes beyond, nothing is left in it."""
    whole = run_and_report.run(config(tmp_path / "whole", model__name="expert"))
    length = (whole / "recordings.jsonl").stat().st_size
    words = ["eval", "--env", "Corridor", "--model", "expert", "--set", "run.concurrency=1"]
    with started(FULL, *words, length // 2, cwd=tmp_path, stderr=subprocess.PIPE) as child:
        _, stderr = child.communicate(timeout=60)
    folder = tmp_path / "evaluations" / whole.name
    assert child.returncode == 2
    assert "Traceback" not in stderr
    assert re.search(r"error: .*File too large; [1-7] episodes are finished .*--resume", stderr)
    kept = (folder / "recordings.jsonl").read_bytes()
    assert 0 < len(kept) < length // 2
    assert (whole / "recordings.jsonl").read_bytes().startswith(kept)
    run_and_report.resume(folder)
    assert written(folder) == written(whole)


def test_a_folder_that_is_deleted_meanwhile_stops_the_evaluation(tmp_path):
    folder = tmp_path / "corridor-valid_seen-react-scripted"

    def deleting(number, _):
        if number == 20:
            shutil.rmtree(folder)

    with ChatServer(walker, deleting) as server:
        with pytest.raises(ResultError, match=r"cannot be written: No such file [^;]*$"):
            run_and_report.run(served(tmp_path, server, run__concurrency=1))
        assert len(server.requests) < 45


def test_a_place_that_cannot_be_written_is_said_in_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultError, match="file/.* cannot be used: Not a directory"):
        run_and_report.run(config(tmp_path / "file", model__name="expert"))


def test_a_start_that_was_cut_off_is_started_again(tmp_path):
    whole = run_and_report.run(config(tmp_path / "whole", model__name="expert"))
    for left in (("started.json.partial",), ("started.json", "config.json.partial")):
        folder = tmp_path / left[0] / whole.name
        folder.mkdir(parents=True)
        for name in left:
            (folder / name).write_bytes((whole / "started.json").read_bytes()[:99])
        run_and_report.run(config(folder.parent, model__name="expert"))
        assert written(folder) == written(whole)


def test_arguments_given_to_a_resumed_evaluation_leave_the_others_as_they_were(tmp_path):
    made = config(
        tmp_path,
        model__name="expert",
        env__id="ALFWorld",
        env__kwargs={"source": "generated"},
        run__tasks=1,
    )
    folder = run_and_report.run(made)
    before = written(folder)
    done = CliRunner().invoke(
        evaluate, ["--resume", str(folder), "--env-arg", "token=unused"], catch_exceptions=False
    )
    assert done.exit_code == 0
    assert written(folder) == before


def test_other_versions_are_written_down_where_they_played_a_part(tmp_path, monkeypatch, caplog):
    folder = run_and_report.run(config(tmp_path, model__name="expert"))
    before = written(folder)
    first = result(folder)["versions"]
    later = {**first, "agentgyms": "99.0"}
    monkeypatch.setattr(folders, "versions", lambda: later)
    run_and_report.resume(folder)
    assert written(folder) == before
    lines = (folder / "recordings.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "recordings.jsonl").write_bytes(b"".join(lines[:-1]))
    run_and_report.resume(folder)
    assert result(folder)["versions"] == first
    assert result(folder)["later_versions"] == [later]
    assert "versions: agentgyms was" in caplog.text


def test_episodes_that_are_lost_every_time_do_not_keep_others_from_being_played(tmp_path):
    """Tasks with a locked door spoil the server each time, and come before those of other seeds."""

    def spoiled(_, request):
        return status(500) if "take key" in last_message(request["messages"]) else None

    with ChatServer(walker, spoiled) as server:
        made = served(
            tmp_path,
            server,
            service__retries=0,
            run__concurrency=1,
            run__seeds=[0, 1],
        )
        finished = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(running, "LOST_IN_A_ROW", 3)
            patch.setattr(play_units, "REPLAYS", 0)
            with pytest.raises(EvaluationStopped, match="3 episodes in a row"):
                run_and_report.run(made)
            [folder] = tmp_path.iterdir()
            for _ in range(3):
                finished.append(result(folder)["episodes"]["finished"])
                with pytest.raises(EvaluationStopped, match="3 episodes in a row"):
                    run_and_report.resume(folder)
    result_json = result(folder)
    assert finished[0] == 4
    assert result_json["episodes"] == {"planned": 16, "finished": 8, "missing": 8}
    assert all("locked" in one["task_id"] for one in result_json["missing"])
    assert "MISSING: 8 episodes" in (folder / "table.md").read_text()
