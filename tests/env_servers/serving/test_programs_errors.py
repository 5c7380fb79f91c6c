"""Errors that no program of the servers expects: one line, and a log with the traceback."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import platformdirs
import pytest

ROOT = Path(__file__).parents[3]
PROGRAMS = {
    "env_servers": ["agentgyms/Corridor-v0"],
    "env_servers.retriever": [],
    "env_servers.webshop_site": [],
    "env_servers.gate": ["--to", "localhost:1"],
}
"""The modules that `python -m` runs, with arguments."""


def test_every_program_has_a_row():
    programs = {
        path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
        for path in (ROOT / "env_servers").rglob("*.py")
        if "\nif __name__ ==" in path.read_text()
    }
    own = {"env_servers.appworld_engine"}  # becomes `env_servers`, and has one error of its own
    assert {name.removesuffix(".__main__") for name in programs} - own == PROGRAMS.keys()


@pytest.mark.parametrize("module", PROGRAMS)
def test_an_unexpected_error_is_one_line_and_a_log(module, tmp_path, monkeypatch, capsys):
    def fail(*_, **__):
        raise RuntimeError("first\nsecond")

    monkeypatch.setattr(platformdirs, "user_log_path", lambda _: tmp_path)
    monkeypatch.setattr("agentgyms.serving.until_signal.serve", fail)
    monkeypatch.setattr("asyncio.start_server", fail)
    # These change this process.
    monkeypatch.setattr("env_servers.command_lines.begin", lambda *_, **__: None)
    monkeypatch.setattr("env_servers.observability.logs.set_up", lambda: None)
    monkeypatch.setattr(sys, "argv", [module, "--port", "0", *PROGRAMS[module]])
    own = module if module == "env_servers.gate" else f"{module}.__main__"
    monkeypatch.delitem(sys.modules, own, raising=False)  # else `runpy` warns of a second copy
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    assert ended.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    (log,) = tmp_path.iterdir()
    assert line.startswith("error: RuntimeError: first second (unexpected; the traceback is in ")
    assert log.name.startswith("env_servers-")
    assert "in fail" in log.read_text()


def test_a_module_of_the_users_that_breaks_is_one_line(tmp_path):
    (tmp_path / "broken.py").write_text("1 / 0\n")
    done = subprocess.run(
        [sys.executable, "-m", "env_servers", "broken:Env-v0", "--port", "0"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "XDG_STATE_HOME": ""},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert re.fullmatch(r"error: ZeroDivisionError: .* \(unexpected; the traceback is in .*\)\n",
                        done.stderr)  # fmt: skip
