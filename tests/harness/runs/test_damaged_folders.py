"""Files of runs and evaluations, damaged by hand: a clear message each time, and nothing lost."""

import json
import shutil

import click
import pytest
from evaluation_helpers import config, written
from run_contents import left
from small_training import small

from agentgyms.core.errors import AgentGymsError
from harness.cli.main import main
from harness.reporting import run_and_report
from harness.runs import checkpoints
from harness.training import setup


def cut(content):
    return content[: len(content) // 2]


def without_keys(content):
    """Drop the values of a JSON object, in each of its lines if there are several."""
    return b"{}\n" * max(1, content.count(b"\n{"))


def with_nan(content):
    """Put NaN in place of every number of a JSON text."""
    return json.dumps(_nan_for_numbers(json.loads(content.splitlines()[0]))).encode() + b"\n"


def _nan_for_numbers(value):
    if isinstance(value, dict):
        return {key: _nan_for_numbers(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_nan_for_numbers(inner) for inner in value]
    return float("nan") if isinstance(value, int | float) and value is not True else value


def with_other_types(content):
    """Put a list in place of every value of a JSON object."""
    return json.dumps({key: [[]] for key in json.loads(content.splitlines()[0])}).encode() + b"\n"


DAMAGES = {
    "empty": lambda _: b"",
    "cut": cut,
    "null": lambda _: b"null\n",
    "a number": lambda _: b"7\n",
    "a text": lambda _: b'"text"\n',
    "a list": lambda _: b"[]\n",
    "deep": lambda _: b"[" * 200_000,
    "deep object": lambda _: b'{"a":' * 200_000,
    "no UTF-8": lambda content: b"\xff\xfe" + content,
    "no text": lambda _: bytes(range(256)) * 20,
    "without keys": without_keys,
    "NaN": with_nan,
    "infinite": lambda content: with_nan(content).replace(b"NaN", b"1e999"),
    "huge": lambda content: with_nan(content).replace(b"NaN", b"9" * 400),
    "other types": with_other_types,
    "a folder": None,
    "missing": None,
}
FEW = ("empty", "deep", "no UTF-8", "without keys", "other types", "a folder")
KINDS = [
    pytest.param(FEW, id="few"),
    pytest.param(tuple(DAMAGES), marks=pytest.mark.slow, id="all"),
]


def damage(file, name):
    """Damage a file; return whether this damage fits it."""
    if name in ("a folder", "missing"):
        file.unlink()
        if name == "a folder":
            file.mkdir()
        return True
    try:
        file.write_bytes(DAMAGES[name](file.read_bytes()))
    except (ValueError, AttributeError):  # not JSON, or no object
        return False
    return True


def content_of(folder, but):
    """Return the files of a folder but the damaged one and what reports draw."""
    drawn = {"table.md", "page.html", "curve.png", "training.png", ".lock"}
    return {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path != but and path.name not in drawn
    }


def outcome(words, note):
    """Run a command; return its error's message, "" if it succeeded."""
    try:
        main.main(words, standalone_mode=False)
    except (AgentGymsError, click.ClickException) as e:
        return str(e)
    except SystemExit as e:
        return f"exit {e.code}" if e.code else ""
    except BaseException as e:
        e.add_note(note)
        raise
    return ""


def try_all(whole, name, tmp_path, kinds, *commands):
    """Damage one file in several ways, and run commands on each; yield how each ended.

    A command that fails changes no other file; then only the damaged one is put back.
    """
    folder = tmp_path / "damaged" / whole.name
    file = folder / name
    for kind in kinds:
        for words in commands:
            if not folder.exists():
                shutil.copytree(whole, folder, symlinks=True)
            if not damage(file, kind):
                continue
            before = content_of(folder, file)
            words = [word.replace("FOLDER", str(folder)) for word in words]
            said = outcome(words, f"{name}: {kind}: {words}")
            if said:
                assert content_of(folder, file) == before, (kind, words)
                shutil.rmtree(file) if file.is_dir() else file.unlink(missing_ok=True)
                shutil.copy2(whole / name, file)
            else:
                shutil.rmtree(folder)
            yield kind, words[0], said


# Evaluations


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    made = config(
        tmp_path_factory.mktemp("evaluated"), model__name="expert", run__tasks=2, env__max_turns=3
    )
    return run_and_report.run(made)


NOT_READ = ("provenance.json", "config.json", "started.json")
"""Files that reports do without."""


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize(
    "name", ["config.json", "started.json", "result.json", "provenance.json", "recordings.jsonl"]
)
def test_a_damaged_evaluation_says_what_is_damaged(evaluated, tmp_path, name, kinds, monkeypatch):
    monkeypatch.chdir(tmp_path)
    commands = ["report", "FOLDER"], ["eval", "--resume", "FOLDER"]
    for kind, command, said in try_all(evaluated, name, tmp_path, kinds, *commands):
        told = (kind, command, said)
        if command == "report" and name in NOT_READ:
            assert not said, told
        elif command == "report" and name == "recordings.jsonl" and kind == "missing":
            assert not said, "the outcomes are enough"
        elif command == "report" and kind == "missing":
            assert "has not ended: harness eval --resume" in said
        else:
            assert name in said or (command == "eval" and not said), told


# Runs


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    made = small(
        tmp_path_factory.mktemp("trained"), "run", "run.steps=2", "eval.tasks=2", "eval.every=1",
        "warmstart.steps=2", "checkpoint.every=1", "checkpoint.keep=2", "run.keep_rollouts=1",
        "log.outputs=[]",
    )  # fmt: skip
    trainer = setup.start(made)
    trainer.run()
    return trainer.folder.path


REPORT = ["report", "FOLDER"], ["report", "FOLDER", "--format", "csv"]
RESUME = ["train", "--resume", "FOLDER"]
NEWEST = "checkpoints/step-000002"


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize(
    "name", ["config.json", "metrics.jsonl", "evaluations/step-000002-valid_seen.json"]
)
def test_a_damaged_run_says_what_is_damaged(trained, tmp_path, name, kinds):
    for told in try_all(trained, name, tmp_path, kinds, *REPORT, RESUME):
        assert told[2] == "" or name.rpartition("/")[2] in told[2], told


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "provenance.json",
        "rollouts/step-000002.jsonl.gz",
        f"{NEWEST}/checkpoint.json",
        f"{NEWEST}/config.json",
        f"{NEWEST}/model.safetensors",
        f"{NEWEST}/tokenizer.json",
        f"{NEWEST}/tokenizer_config.json",
        f"{NEWEST}/trainer.pt",
    ],
)
def test_a_run_with_a_damaged_file_goes_on_or_says_why(trained, tmp_path, name):
    for kind, command, said in try_all(
        trained, name, tmp_path, DAMAGES, RESUME, ["credit", "FOLDER"]
    ):
        assert not said or command == "credit", (kind, said)


def test_a_checkpoint_without_digests_is_damaged(trained, tmp_path):
    folder = shutil.copytree(trained, tmp_path / "run", symlinks=True)
    (folder / NEWEST / "checkpoint.json").write_text('{"step": 2}')
    assert "checkpoint.json is damaged: 'files'" in checkpoints.damage_of(folder / NEWEST)
    assert checkpoints.newest(folder).step == 1


def test_a_damaged_checkpoint_costs_its_steps_and_no_more(trained, tmp_path):
    folder = shutil.copytree(trained, tmp_path / "run", symlinks=True)
    (folder / NEWEST / "checkpoint.json").write_bytes(b"[" * 200_000)
    assert checkpoints.newest(folder).step == 1
    setup.resume(folder).run()
    assert left(folder) == left(trained)


def test_an_evaluation_is_written_again_from_its_recordings(evaluated, tmp_path):
    folder = shutil.copytree(evaluated, tmp_path / evaluated.name)
    for name in ("result.json", "table.md", "page.html"):
        (folder / name).unlink()
    run_and_report.resume(folder)
    assert written(folder) == written(evaluated)
