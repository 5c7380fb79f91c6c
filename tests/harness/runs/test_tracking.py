"""What a run shows of itself: figures, their trackers, phases, progress and pictures."""

import importlib
import io
import json
import os
import re
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from matplotlib.figure import Figure
from PIL import Image

from agentgyms.data import progress_bar
from harness import config as configs
from harness.reporting import figure
from harness.reporting.curves import training_curves
from harness.reporting.curves.training_curves import running_mean
from harness.reporting.results import training_runs
from harness.runs import metrics, tracking
from harness.runs.answer_pace import AnswerPace
from harness.runs.metrics import MetricsLog
from harness.runs.progress import Progress
from harness.training import setup
from harness.training.phases import PhaseTimer
from harness.types.errors import ConfigError
from harness.types.rollout import Rollout, models_cost

ROOT = Path(__file__).parents[3]
SMALL = [
    "policy.tiny.layers=1",
    "policy.tiny.hidden=48",
    "policy.tiny.heads=4",
    "policy.tiny.feed_forward=64",
    "warmstart.episodes=20",
    "warmstart.steps=10",
    "warmstart.batch_size=16",
    "warmstart.learning_rate=5e-3",
    "env.max_turns=8",
    "run.threads=1",
    "run.steps=2",
    "run.name='seen'",
]
PRIVATE = [
    "log.outputs=['wandb']",
    "log.project='agents'",
    "env.kwargs.url='http://10.0.0.7:8000'",
    "env.kwargs.judge='gpt@https://models.example.org/v1'",
    "eval.kwargs.api_key='sk-1'",
    "rollout.urls=['http://10.0.0.8:8000']",
    "run.output='/home/someone/runs'",
    "policy.model='/models/qwen-7b'",
    "method.credit.scorer='cross-encoder:/home/someone/judge'",
    "warmstart.expert='../someone/expert'",
    "env.kwargs.store='redis://root:secret@10.0.0.9/1'",
]


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """A run of two steps with a price, without TensorBoard."""
    folder = tmp_path_factory.mktemp("seen")
    settings = [f"run.output='{folder}'", "log.outputs=['pictures']", "log.price_per_hour=3.6"]
    trainer = setup.start(configs.load("corridor-tiny", [*SMALL, *settings]))
    trainer.run()
    return trainer.folder.path


def test_what_the_clock_and_the_machine_decide_lies_apart(seen):
    records = metrics.read(seen)
    step = next(r for r in records if r["step"] == 2 and "update/loss" in r)
    phases = {"collect", "rescore", "credit", "update", "annotators", "sync"}
    assert {f"time/{name}_s" for name in phases} < step.keys()
    shares = [value for name, value in step.items() if name.endswith("_share") and "time/" in name]
    assert sum(shares) == pytest.approx(1)
    assert step["time/collect_tokens_per_s"] > 0
    assert step["memory/peak_rss_gib"] > 0.05
    assert step["cost/update_usd"] == pytest.approx(step["time/update_s"] * 1e-3)
    assert "time/save_s" in records[1], "the checkpoint of step 0, told with step 1"
    evaluation = records[-1]
    assert evaluation["time/evaluate_s"] > 0
    spent = [r["cost/so_far_usd"] for r in records]
    assert spent == sorted(spent)
    assert spent[-1] == pytest.approx(
        sum(v for r in records for k, v in r.items() if k.startswith("cost/") and "so_far" not in k)
    )
    for name in metrics.repeatable(step):
        assert name == "step" or name.startswith(("rollout/", "credit/", "update/")), name


def test_success_by_family_adds_up(seen):
    step = next(r for r in metrics.read(seen) if "update/loss" in r)
    families = [v for k, v in step.items() if k.startswith("rollout/success_")]
    assert len(families) >= 1
    assert min(families) <= step["rollout/success"] <= max(families)


def test_every_figure_is_explained(seen):
    """docs/training.md has a row for each name that a run logs, and for those of other settings."""
    text = (ROOT / "docs/training.md").read_text()
    section = text.partition("## Figures")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (.*?) \|", section, re.MULTILINE)
    names = [name for cell in cells for name in re.findall(r"`([^`]+/[^`]+)`", cell)]
    assert len(names) > 40
    patterns = [re.sub(r"<[a-z ]+>", "[A-Za-z0-9_-]+", name) for name in names]
    logged = {name for record in metrics.read(seen) for name in record} - {"step"}
    missing = {n for n in logged if not any(re.fullmatch(p, n) for p in patterns)}
    assert not missing
    exact = {name for name in names if "<" not in name and name.startswith("rollout/")}
    assert {n for n in logged if n.startswith("rollout/") and "success_" not in n} <= exact


def test_tensorboard_is_left_out_when_nobody_wants_it(seen, tmp_path, monkeypatch):
    assert not (seen / "tensorboard").exists()
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)  # importing it would raise
    config = configs.load("corridor-tiny", ["log.outputs=[]"])
    assert tracking.open_all(config, tmp_path) == []
    with pytest.raises(ImportError):
        tracking.open_all(configs.load("corridor-tiny"), tmp_path)


def test_tensorboard_gets_what_is_finite(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    config = configs.load("corridor-tiny")
    log = MetricsLog(tmp_path, None, tracking.open_all(config, tmp_path))
    log.write(1, {"update/loss": 0.5, "eval/x/score": float("nan"), "cost/so_far_usd": 1.5})
    log.write(2, {"update/loss": 0.25, "cost/so_far_usd": 2.5})
    log.close()
    log = MetricsLog(tmp_path, 1, tracking.open_all(config, tmp_path, 1))
    assert log.spent == 1.5  # not the cost of the step that runs again
    log.write(2, {"update/loss": 0.125})
    log.close()
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert events.Tags()["scalars"] == ["update/loss", "cost/so_far_usd"]
    assert [(e.step, e.value) for e in events.Scalars("update/loss")] == [(1, 0.5), (2, 0.125)]


@pytest.mark.parametrize("package", ["wandb", "trackio"])
def test_packages_of_trackers_are_asked_for_before_anything_is_computed(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    chosen = f"log.outputs=['{package}']"
    with pytest.raises(ConfigError, match=f"pip install {package}, or leave it out of log.outputs"):
        tracking.check(configs.load("corridor-tiny", [chosen, "log.project='agents'"]))
    for nothing in ([], ["log.project=''"]):
        with pytest.raises(ConfigError, match="name of a project"):
            tracking.check(configs.load("corridor-tiny", [chosen, *nothing]))
    tracking.check(configs.load("corridor-tiny"))


def test_what_is_shared_holds_no_address_key_or_folder():
    config = configs.load("alfworld-tiny", PRIVATE)
    shared = tracking.shareable(config)
    text = json.dumps(shared)
    for private in ("http", "10.0.0", "sk-1", "secret", "someone", "/models", "example.org"):
        assert private not in text
    assert shared["policy"]["model"] == "qwen-7b"
    assert shared["env"]["kwargs"] == {"judge": "gpt", "store": ""}
    assert shared["method"]["credit"]["scorer"] == "cross-encoder:judge"
    assert tracking.shareable(configs.load("alfworld-scpo-7b"))["policy"]["model"] == (
        "Qwen/Qwen2.5-7B-Instruct"
    )
    assert shared["agent"]["max_tokens"] == 12
    assert shared["optimizer"]["micro_batch_tokens"] == 8192
    assert tracking.tags(config) == ["gigpo", "ALFWorld-v0", "qwen-7b"]


@pytest.fixture
def wandb(monkeypatch):
    """W&B of the Python that has others' projects, which is of the same version."""
    python = os.environ["AGENTGYMS_ADAPTERS_PYTHON"]
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    found = subprocess.run([python, "-c", where], capture_output=True, text=True, check=True)
    monkeypatch.setattr(sys, "path", [*sys.path, found.stdout.strip()])
    monkeypatch.setenv("WANDB_MODE", "offline")
    return importlib.import_module("wandb")


@pytest.mark.adapters
@pytest.mark.filterwarnings("ignore")
def test_wandb_offline_keeps_the_figures_and_a_resumed_run_goes_on(tmp_path, wandb):
    config = configs.load("alfworld-tiny", PRIVATE)
    for steps in ((1, 2, 3), (3, 4)):
        log = MetricsLog(tmp_path, None, tracking.open_all(config, tmp_path))
        for step in steps:
            log.write(step, {"update/loss": 1 / step})
        log.close()
    files = sorted(tmp_path.glob("wandb/offline-run-*/*.wandb"))
    assert len(files) == 2
    runs, events = set(), []
    for record in (record for file in files for record in _when_whole(file)):
        kind = record.WhichOneof("record_type")
        assert not re.search(r"10\.0\.0|sk-1|/home/someone|/models|example\.org", str(record))
        if kind == "run":
            runs.add((record.run.run_id, record.run.project, tuple(record.run.tags)))
        elif kind == "history":
            values = {i.nested_key[0]: i.value_json for i in record.history.item}
            events.append((int(values["step"]), float(values["update/loss"])))
    run_id = json.loads((tmp_path / "wandb.json").read_text())["id"]
    assert runs == {(run_id, "agents", ("gigpo", "ALFWorld-v0", "qwen-7b"))}
    assert events == [(step, 1 / step) for step in (1, 2, 3, 3, 4)]


TRACKED = """
import json, sys
from pathlib import Path
import trackio
from trackio.sqlite_storage import SQLiteStorage
from harness import config as configs
from harness.runs import tracking
from harness.runs.metrics import MetricsLog

folder, settings = Path(sys.argv[1]), json.loads(sys.argv[2])
config = configs.load("alfworld-tiny", settings)
for steps in ((1, 2, 3), (3, 4)):
    log = MetricsLog(folder, None, tracking.open_all(config, folder))
    for step in steps:
        log.write(step, {"update/loss": 1 / step, "eval/valid_seen/score": float("nan")})
    log.close()
runs = trackio.Api().runs("agents")
rows = SQLiteStorage.get_logs("agents", runs[0].name)
values = [[row["step"], row["update/loss"]] for row in rows]
print(json.dumps([[run.name for run in runs], runs[0].config, values]))
"""


@pytest.mark.adapters
def test_trackio_keeps_the_figures_and_a_resumed_run_goes_on(tmp_path):
    settings = [*PRIVATE[1:], "log.outputs=['trackio']", "run.name='seen'"]
    done = subprocess.run(
        [os.environ["AGENTGYMS_ADAPTERS_PYTHON"], "-c", TRACKED, tmp_path, json.dumps(settings)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TRACKIO_DIR": str(tmp_path / "kept")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (printed,) = done.stdout.splitlines()
    names, config, values = json.loads(printed)
    run_id = json.loads((tmp_path / "trackio.json").read_text())["id"]
    assert names == [f"seen-{run_id}"]
    assert values == [[step, 1 / step] for step in (1, 2, 3, 3, 4)]
    assert config["tags"] == ["gigpo", "ALFWorld-v0", "qwen-7b"]
    assert not re.search(r"10\.0\.0|sk-1|/home/someone|/models|example\.org", json.dumps(config))


def _when_whole(path):
    """Return a file's records; wandb's own process may write the last ones after the run's end."""
    deadline = time.monotonic() + 30
    while True:
        records = list(_wandb_records(path))
        kinds = {record.WhichOneof("record_type") for record in records}
        if "exit" in kinds or time.monotonic() > deadline:
            return records
        time.sleep(0.2)


def _wandb_records(path):
    """Read LevelDB's log format: blocks of 32 KiB, chunks with heads of 7 bytes."""
    from wandb.proto import wandb_internal_pb2

    content, place, joined = path.read_bytes(), 7, b""
    while place < len(content):
        if 32768 - place % 32768 < 7:
            place += 32768 - place % 32768
            continue
        _, size, kind = struct.unpack("<IHB", content[place : place + 7].ljust(7, b"\0"))
        if place + 7 + size > len(content):
            return  # being written
        joined += content[place + 7 : place + 7 + size]
        place += 7 + size
        if kind in (1, 4):  # whole, or the last part
            record = wandb_internal_pb2.Record()
            record.ParseFromString(joined)
            joined = b""
            yield record


def test_phases_by_hand(monkeypatch):
    clock = iter([0.0, 3.0, 10.0, 11.0, 20.0, 24.0, 30.0, 32.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    phases = PhaseTimer(torch.device("cpu"), price_per_hour=3600.0, spent=5.0)
    for name in ("collect", "update", "collect"):
        with phases(name):
            pass
    found = phases.take({"collect": 70, "update": 5, "sync": 9}, models_usd=0.5)
    found.pop("memory/peak_rss_gib")
    assert found == {
        "time/collect_s": 7.0,
        "time/update_s": 1.0,
        "time/collect_share": 0.875,
        "time/update_share": 0.125,
        "time/step_s": 8.0,
        "time/collect_tokens_per_s": 10.0,
        "time/update_tokens_per_s": 5.0,
        "cost/collect_usd": 7.0,
        "cost/update_usd": 1.0,
        "cost/models_usd": 0.5,
        "cost/so_far_usd": 13.5,
    }
    with phases("evaluate"):
        pass
    found = phases.take()
    assert {k: v for k, v in found.items() if "memory" not in k} == {
        "time/evaluate_s": 2.0,
        "cost/evaluate_usd": 2.0,
        "cost/so_far_usd": 15.5,
    }


def test_without_a_price_models_of_the_environment_still_cost():
    phases = PhaseTimer(torch.device("cpu"))
    assert not any(name.startswith("cost/") for name in phases.take())
    rollouts = [
        Rollout("a", "", 0, 0, 0, metrics={"cost": 0.25}),
        Rollout("b", "", 0, 1, 0, metrics={"cost": float("nan")}),
        Rollout("c", "", 0, 2, 0),
    ]
    found = phases.take(models_usd=models_cost(rollouts))
    assert (found["cost/models_usd"], found["cost/so_far_usd"]) == (0.25, 0.25)
    assert phases.take()["cost/so_far_usd"] == 0.25


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("is_terminal", [True, False])
def test_progress_is_a_bar_on_terminals_and_lines_in_files(monkeypatch, is_terminal):
    shown = Terminal() if is_terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(progress_bar, "EVERY_S", 0.0)
    monkeypatch.setattr(progress_bar.ProgressBar, "_next_line", None)
    progress = Progress(4, 1, 2)
    with progress.episodes(AnswerPace(8)) as on_finish:
        on_finish(Rollout("a", "", 0, 0, 0, success=True))
        on_finish(Rollout("b", "", 0, 1, 0))
    figures = {"rollout/success": 0.5, "rollout/score": 0.25, "rollout/turns": 3.0}
    progress.step({**figures, "time/collect_tokens_per_s": 123.4})
    progress.close()
    if not is_terminal:
        assert "\r" not in shown.getvalue()
        line = (
            "train: 2 of 4 steps, 00:00 so far, success=0.50, score=0.25, turns=3.0, tokens/s=123"
        )
        assert line in shown.getvalue().splitlines()
        return
    assert "2/4" in shown.getvalue()
    assert "success=0.50, score=0.25, turns=3.0, tokens/s=123" in shown.getvalue()
    assert "collect" in shown.getvalue()


def test_an_update_shows_rows_tokens_a_second_and_the_time_left(monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(progress_bar, "EVERY_S", 0.0)
    monkeypatch.setattr(progress_bar.ProgressBar, "_next_line", None)
    now = 0.0
    with Progress(4, 1, 2).learning(8, lambda: now) as advance:
        now = 10.0
        advance(1.6, 300)
        now = 50.0
        advance(6.5, 300)  # a share that is rounded up ends at the last row
    lines = [line for line in shown.getvalue().splitlines() if "tokens/s" in line]
    said = r"learn: 2 of 8 rows, \d\d:\d\d so far, 30 tokens/s, learnt in about 40 s"
    assert re.fullmatch(said, lines[0])
    assert re.fullmatch(r"learn: 8 of 8 rows, \d\d:\d\d so far, 12 tokens/s", lines[-1])


def test_the_picture_has_what_was_logged(seen, tmp_path):
    run = training_runs.read(seen)
    panels = {p.title: p for p in training_curves.panels(run, metrics.read(seen))}
    success = panels["success and score (%)"]
    assert success.lines[0].label == "training: success"
    assert success.lines[0].steps == (1, 2)
    assert {"loss", "gradient norm", "shares (%)", "turns of an episode"} < panels.keys()
    seconds = panels["seconds a step"]
    assert seconds.stacked
    assert all(line.steps == (1, 2) for line in seconds.lines)
    assert {"collect", "evaluate"} <= {line.label for line in seconds.lines}
    with Image.open(seen / "training.png") as image:
        assert image.size[0] == 1430
        assert len(image.convert("RGB").getcolors(1 << 24)) > 50, "the panels are drawn"


def test_a_single_point_is_seen():
    axes = Figure().add_subplot()
    for steps in ((3,), (1, 2)):
        values = (0.5,) * len(steps)
        figure.fill(axes, figure.Panel("", (figure.Line("entropy", steps, values),)))
    assert [line.get_marker() for line in axes.lines] == ["o", ""]


def test_a_run_without_a_step_has_no_picture(seen, tmp_path):
    run = training_runs.read(seen)
    assert training_curves.panels(run, [{"step": 0, "eval/valid_seen/success": 0.0}]) == []


def test_long_courses_are_smoothed_by_their_neighbours():
    assert running_mean([0.0, 3.0, 6.0, 0.0]) == (1.5, 3.0, 3.0, 3.0)
    assert running_mean([2.0] * 100) == pytest.approx([2.0] * 100)
    many = running_mean([float(i % 2) for i in range(400)])
    assert len(many) == 400
    assert max(many[20:-20]) - min(many[20:-20]) < 0.1
