"""All commands of README and documentation are what programs take; those that can run here do."""

import contextlib
import importlib.util
import re
import shlex
import shutil
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

import click
import doc_blocks
import pytest
import shell_calls
import small_commands
import yaml

from agentgyms.cli.main import main as agentgyms_cli
from harness.cli.main import main as harness_cli

ROOT = doc_blocks.ROOT
OURS = "agentgyms bash cd docker harness make pip python torchrun"
PROGRAMS = {*doc_blocks.KNOWN["programs"], *OURS.split()}
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
TARGETS = re.findall(r"^([a-z][a-z0-9-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
SERVICES = yaml.safe_load((ROOT / "docker/compose.yaml").read_text())["services"]
COMMANDS = {"harness": harness_cli, "agentgyms": agentgyms_cli}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What each block calls: `{block: [[program, argument, ...], ...]}`."""
    folder = tmp_path_factory.mktemp("shell")
    blocks = doc_blocks.of("bash")
    scripts = ["ID=ID", *(block.text for block in blocks)]
    return dict(zip(blocks, shell_calls.calls(scripts, PROGRAMS, folder)[1:], strict=True))


def exception(call):
    """Return why a command does not run here, "" if it does."""
    line = " ".join(call)
    known = doc_blocks.KNOWN["bash"]
    reasons = (row["reason"] for row in known for one in row["commands"] if fnmatchcase(line, one))
    return next(reasons, "")


def parsed(call):
    """Give a command to its program's own parser.

    Raises:
        AssertionError, click.ClickException: It takes no such thing.
    """
    program, *words = call
    if program == "torchrun":
        from torch.distributed.run import get_args_parser

        given = get_args_parser().parse_args(words)
        assert given.module
        program, words = "python", ["-m", given.training_script, *given.training_script_args]
    if program == "python":
        program, words = of_python(words)
    if program == "pip":
        assert words[0] == "install"
        for extra in re.findall(r"\[([\w,]+)\]", " ".join(words)):
            assert set(extra.split(",")) <= EXTRAS.keys(), extra
    elif program == "make":
        assert words[0] in TARGETS
    elif program in ("bash", "script"):
        text = (ROOT / words[0]).read_text(encoding="utf-8")
        assert all(word in text for word in words if word.startswith("--"))
    elif program == "docker":
        composed(words)
    elif isinstance(command := COMMANDS.get(program, program), click.Command):
        by_click(command, words)


def of_python(words):
    """Return the program and the words of a call of `python`."""
    if words[0] != "-m":
        return "script", words
    if words[1] in COMMANDS:
        return words[1], words[2:]
    name = f"{words[1]}.__main__"
    # Those without a function are programs that take nothing.
    if "def main(" not in Path(importlib.util.find_spec(name).origin).read_text(encoding="utf-8"):
        return name, words[2:]
    return importlib.import_module(name).main, words[2:]


def composed(words):
    """Check a call of `docker compose`: its file, and the services that it names."""
    assert words[0] == "compose"
    if "-f" in words:
        assert (ROOT / words[words.index("-f") + 1]).is_file()
    named = set(words) & SERVICES.keys()
    assert named or words[-1] in ("-d", "stop"), words


def by_click(command, words):
    """Parse words as a command does, and those of the command below it that they name."""
    while isinstance(command, click.Group):
        assert set(words[:1]) & command.commands.keys(), words
        command, words = command.commands[words[0]], words[1:]
    with command.make_context(command.name, list(words)):
        pass


def test_every_command_is_accepted_by_its_program(found):
    for block, calls in found.items():
        # Files of one's own are written by the test that follows the page.
        files = set(re.findall(r"```python\n# (\w+\.py)\n", (ROOT / block.page).read_text()))
        for call in calls:
            if call[0] == "python" and set(call[1:]) <= files:
                continue
            try:
                parsed(call)
            except (AssertionError, OSError, click.ClickException) as error:
                raise AssertionError(f"{block}: {shlex.join(call)}: {error}") from error


INLINE = re.compile(r"(?<!`)`((?:harness|agentgyms|make|python -m|docker compose) [^`]+)`(?!`)")


@pytest.mark.parametrize("page", sorted(set(doc_blocks.PAGES) - {"docs/papers.md"}))
def test_commands_in_sentences_are_accepted(page, tmp_path):
    """They may leave out what a command cannot do without, for that is not what they are about."""
    (tmp_path / "docs").mkdir()  # one writes there
    text = (ROOT / page).read_text(encoding="utf-8")
    found = INLINE.findall(re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE))
    lines = [" ".join(line.split()) for line in found]
    for line, calls in zip(lines, shell_calls.calls(lines, PROGRAMS, tmp_path), strict=True):
        for call in calls:
            try:
                parsed(call)
            except (click.MissingParameter, click.BadOptionUsage):
                pass
            except (AssertionError, OSError, click.ClickException) as error:
                raise AssertionError(f"{page}: `{line}`: {error}") from error


def test_every_evaluation_resolves(found):
    blocks = [block for block in found if not doc_blocks.elsewhere(block.page)]
    for call in (call for block in blocks for call in found[block]):
        if call[:2] == ["harness", "eval"] and "--resume" not in call:
            if "runs/" in " ".join(call):
                continue  # a run that is not there
            small_commands.run([*call, "--print-config"])


def test_wrong_commands_are_noticed():
    for line in (
        "harness trian x", "harness report --no-such", "agentgyms data bring x", "make tests",
        "pip install -e .[al]", "docker compose up -d alfword", "python benchmarks/no.py",
        "python -m env_servers x --prot 1", "torchrun -m harness credit --no-such",
    ):  # fmt: skip
        with pytest.raises((AssertionError, click.ClickException, FileNotFoundError)):
            parsed(line.split())
    with pytest.raises(AssertionError, match="rm: "):
        shell_calls.calls(["rm x"], ["make"])


def test_exceptions_are_still_needed(found):
    lines = [" ".join(call) for calls in found.values() for call in calls]
    for row in doc_blocks.KNOWN["bash"]:
        assert row["reason"]
        for pattern in row["commands"]:
            assert any(fnmatchcase(line, pattern) for line in lines), pattern
        for test in re.findall(r"tests/[\w./]+", row["reason"]):
            assert (ROOT / test).exists(), test
    called = {line.split()[0] for line in lines}
    assert called == PROGRAMS


def test_what_runs_is_a_command_of_ours(found):
    """Everything else says in exceptions.toml why it does not run."""
    for block, calls in found.items():
        for call in () if doc_blocks.elsewhere(block.page) else calls:
            ours = call[0] in COMMANDS or call[:2] == ["python", "-m"]
            assert ours or exception(call), f"{block}: add to tests/docs/exceptions.toml: {call}"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A folder with what the commands begin with."""
    folder = tmp_path_factory.mktemp("prepared")
    with contextlib.chdir(folder):
        small_commands.prepare(folder)
    return folder


WITH_SHELL = sorted({b.page for b in doc_blocks.of("bash") if not doc_blocks.elsewhere(b.page)})


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_SHELL)
def test_commands_that_can_run_here_run(page, found, prepared, tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTGYMS_DATA", str(tmp_path / "data"))
    runs = [call for block in found if block.page == page for call in found[block]]
    runs = [call for call in runs if not exception(call)]
    if not runs:
        pytest.skip("this page has no command that runs here")
    shutil.copytree(prepared, tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    for call in runs:
        assert small_commands.run(call, given="quit\n"), call
