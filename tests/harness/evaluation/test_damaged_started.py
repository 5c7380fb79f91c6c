"""`harness eval --resume` where `started.json` is damaged: one line that names the field."""

import copy
import io
import json
import sys

import platformdirs
import pytest
from evaluation_helpers import config

from harness.cli import main as harness
from harness.evaluation.results import STARTED
from harness.reporting import run_and_report

WRONG = (7, "x", [], {}, None, True, [[1]], {"a": {"b": 1}}, 1e400)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A finished evaluation."""
    own = tmp_path_factory.mktemp("started")
    return run_and_report.run(config(own, model__backend="random", run__tasks=2))


@pytest.fixture
def said(folder, tmp_path, monkeypatch, capsys):
    """What a resume says of a changed `started.json`; it must expect whatever happens."""
    logs, file = tmp_path / "logs", folder / STARTED
    whole = file.read_bytes()
    monkeypatch.setattr(platformdirs, "user_log_path", lambda _: logs)

    def resume(value):
        file.write_text(json.dumps(value))
        monkeypatch.setattr(sys, "argv", ["harness", "eval", "--resume", str(folder)])
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        with pytest.raises(SystemExit) as ended:
            harness.run()
        captured = capsys.readouterr()
        text = captured.out + captured.err
        assert not logs.exists(), f"{text}\n{next(logs.iterdir()).read_text()}"
        assert "Traceback" not in text
        return ended.value.code, captured.err

    yield resume
    file.write_bytes(whole)


def places(value, *path):
    """Yield the keys that lead to every value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in inner:
        yield (*path, key)
        if isinstance(one, dict | list):
            yield from places(one, *path, key)


def changed(value, path, new):
    """Return a copy with another value at a place; `...` removes it."""
    value = copy.deepcopy(value)
    *above, last = path
    inner = value
    for key in above:
        inner = inner[key]
    if new is ...:
        del inner[last]
    else:
        inner[last] = new
    return value


def check(said, started, path, new):
    code, text = said(changed(started, path, new))
    if code:
        where = ".".join(map(str, path))
        assert len(text.splitlines()) == 1, (where, new, text)
        assert str(path[0]) in text, (where, new, text)


@pytest.mark.parametrize("new", [7, {}, ...])
@pytest.mark.parametrize("name", ["config", "environment", "seeds", "tasks", "versions"])
def test_a_damaged_field_is_named(folder, said, name, new):
    started = json.loads((folder / STARTED).read_text())
    check(said, started, (name,), new)


def test_damaged_settings_are_named(folder, said):
    started = json.loads((folder / STARTED).read_text())
    code, text = said(changed(started, ("config", "service"), "cheap"))
    assert code == 2
    assert f"{STARTED} is damaged: config.service must be an object, got 'cheap'" in text
    code, text = said(changed(started, ("config", "service", "price_prompt"), 7))
    assert code == 2
    assert "config.service.price_prompt was 7, now None" in text
    code, text = said({**started, "later_versions": [3]})
    assert code == 2
    assert "later_versions must be a list of objects, got [3]" in text


@pytest.mark.slow
def test_every_value_may_be_damaged(folder, said):
    started = json.loads((folder / STARTED).read_text())
    for path in places(started):
        for new in (*WRONG, ...):
            check(said, started, path, new)
