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
import program_texts
import pytest
import shell_calls
import small_commands
import yaml
from huggingface_hub.cli.hf import app as hf_cli

from agentgyms.cli.main import main as agentgyms_cli
from agentgyms.core.errors import AgentGymsError
from agentgyms.data.datasets import data_set
from agentgyms.registration import full_id
from harness import config as configs
from harness.cli.main import main as harness_cli

ROOT = doc_blocks.ROOT
OURS = "agentgyms bash cd docker harness make pip python torchrun"
PROGRAMS = {*doc_blocks.KNOWN["programs"], *OURS.split()}
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
TARGETS = re.findall(r"^([a-z][a-z0-9-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
SERVICES = yaml.safe_load((ROOT / "docker/compose.yaml").read_text())["services"]
COMMANDS = {"harness": harness_cli, "agentgyms": agentgyms_cli}
REFUSED = (AssertionError, OSError, click.ClickException, AgentGymsError)
SPOKEN = ("docker-compose", "hf")
"""Programs that only sentences and messages name."""
OUR_PACKAGES = ("agentgyms", "env_servers", "harness")


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
    if program in ("python", "python3"):
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
    elif program == "hf":
        assert words[0] in hf_cli.commands
    elif program in ("docker", "docker-compose"):
        composed(words if program == "docker" else ["compose", *words])
    elif isinstance(command := COMMANDS.get(program, program), click.Command):
        by_click(command, words)


def of_python(words):
    """Return the program and the words of a call of `python`."""
    if words[0] != "-m":
        return "script", words
    if words[1].partition(".")[0] not in OUR_PACKAGES:
        return words[1], words[2:]
    if words[1] in COMMANDS:
        return words[1], words[2:]
    found = importlib.util.find_spec(words[1])
    name = f"{words[1]}.__main__" if found.submodule_search_locations else words[1]
    # Those without a function are programs that take nothing.
    if "def main(" not in Path(importlib.util.find_spec(name).origin).read_text(encoding="utf-8"):
        return name, words[2:]
    return importlib.import_module(name).main, words[2:]


def composed(words):
    """Check a call of `docker compose` or `docker build`: its file, the services it names."""
    if "-f" in words:
        assert (ROOT / words[words.index("-f") + 1]).is_file()
    assert words[0] in ("compose", "build")
    if words == ["compose"]:
        raise click.MissingParameter("which command?", param_type="argument")
    if words[0] == "build":
        return
    named = set(words) & SERVICES.keys()
    assert named or words[-1] in ("-d", "stop", "config"), words


def by_click(command, words):
    """Parse words as a command does, and those of the command below it that they name."""
    while isinstance(command, click.Group) and words[:1] != ["--version"]:
        if not words:
            raise click.MissingParameter("which command?", param_type="argument")
        assert words[0] in command.commands, words
        command, words = command.commands[words[0]], words[1:]
    with (
        contextlib.suppress(click.exceptions.Exit),  # of --help and --version
        command.make_context(command.name, list(words)) as context,
    ):
        exist(context.params)


def exist(given):
    """Check that the environment, data set and recipe of a command exist, where they are ours."""
    for env_id in (given.get("env_id"), given.get("env")):
        if env_id and re.match("agentgyms/|[A-Z][a-z]", env_id):
            full_id(env_id)
    if {"name", "allow_other"} <= given.keys() and given["name"].islower():
        data_set(given["name"])
    recipe = given.get("recipe") or ""
    own = any(re.search(r"=\W*[\w./]+:[a-z_]", one) for one in given.get("overrides", ()))
    if re.fullmatch(r"[a-z][a-z0-9.+-]+(?<!\.toml)", recipe) and not own:
        configs.load(recipe, given["overrides"])


def test_every_command_is_accepted_by_its_program(found):
    for block, calls in found.items():
        # Files of one's own are written by the test that follows the page.
        files = set(re.findall(r"```python\n# (\w+\.py)\n", (ROOT / block.page).read_text()))
        for call in calls:
            if call[0] == "python" and set(call[1:]) <= files:
                continue
            try:
                parsed(call)
            except REFUSED as error:
                raise AssertionError(f"{block}: {shlex.join(call)}: {error}") from error


@pytest.mark.parametrize("page", sorted(set(doc_blocks.PAGES) - {"docs/papers.md"}))
def test_commands_in_sentences_are_accepted(page, tmp_path):
    """They may leave out what a command cannot do without, for that is not what they are about."""
    (tmp_path / "docs").mkdir()  # one writes there
    text = (ROOT / page).read_text(encoding="utf-8")
    found = program_texts.MARKED.findall(
        re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    )
    accepted([(page, " ".join(line.split())) for line in found], tmp_path)


@pytest.mark.parametrize("kind", ["packages", "comments", "examples"])
def test_commands_that_programs_print_are_accepted(kind, tmp_path):
    (tmp_path / "docs").mkdir()  # one writes there
    found = list(getattr(program_texts, f"of_{kind}")())
    assert len(found) > 8
    accepted(found, tmp_path)


def accepted(found, folder):
    """Give commands with their places to their programs; they may lack what is no topic there."""
    calls = shell_calls.calls([command for _, command in found], {*PROGRAMS, *SPOKEN}, folder)
    for (place, command), called in zip(found, calls, strict=True):
        for call in called:
            try:
                parsed(call)
            except (click.MissingParameter, click.BadOptionUsage):
                pass
            except REFUSED as error:
                raise AssertionError(f"{place}: `{command}`: {error}") from error


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
        "agentgyms info agentgyms/ALFWord-v0", "agentgyms data fetch alfword", "hf downlod x",
        "harness train corridor-tiney", "harness train corridor-tiny --set run.sed=1",
    ):  # fmt: skip
        with pytest.raises(REFUSED):
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
