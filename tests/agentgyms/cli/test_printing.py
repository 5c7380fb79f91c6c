"""Texts of others are shown, and steer no terminal."""

import ast
import logging
from pathlib import Path

import pytest

from agentgyms.cli import printing
from agentgyms.core.errors import path_end, plain, visible

ROOT = Path(__file__).parents[3]

PRINTS_ITSELF = {
    "agentgyms/cli/printing.py": "the one place",
    "agentgyms/core/imports.py": "a fixed text",
    "env_servers/gate.py": "its own address",
    "env_servers/retriever/__main__.py": "a count and a path of the caller",
    "agentgyms/serving/until_signal.py": "its own address",
    "env_servers/webshop_site/__main__.py": "JSON",
    "harness/config/__main__.py": "its own page",
    "harness/distributed/joining.py": "a fixed text",
    "harness/distributed/signals.py": "the name of a signal",
    "harness/model/chat_templates/child.py": "JSON for its parent",
    "harness/training/step_evaluations.py": "numbers",
    "harness/training/warm_start.py": "numbers",
}


def prints(node):
    if not isinstance(node, ast.Call):
        return False
    name = ast.unparse(node.func)
    return name in ("print", "builtins.print", "click.echo", "click.secho", "tqdm.write") or (
        name in ("sys.stdout.write", "sys.stderr.write")
    )


def test_every_text_is_printed_by_one_function():
    found = {
        str(path.relative_to(ROOT))
        for package in ("agentgyms", "env_servers", "harness")
        for path in (ROOT / package).rglob("*.py")
        if any(map(prints, ast.walk(ast.parse(path.read_text()))))
    }
    assert found - set(PRINTS_ITSELF) == set(), "print it with agentgyms.cli.printing.echo"
    assert set(PRINTS_ITSELF) - found == set(), "these print nothing any more"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\n\ttext", "plain\n\ttext"),
        ("ünï, 日本, 👩‍🚀, a\xa0b", "ünï, 日本, 👩‍🚀, a\xa0b"),
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("\x9b2J\x07\x7f", "\\x9b2J\\x07\\x7f"),
        ("over\rwritten", "over\\rwritten"),
        ("safe\u202eexe.txt", "safe\\u202eexe.txt"),
        ("half \ud800", "half \\ud800"),
    ],
)
def test_control_characters_are_escaped(text, shown, capsys):
    assert visible(text) == shown
    printing.echo(text)
    assert capsys.readouterr().out == f"{shown}\n"
    assert "\n" not in path_end(text)
    handler = printing.log_handler()
    assert handler.format(logging.makeLogRecord({"msg": "%s", "args": (text,)})) == shown


def test_a_line_of_others_is_one_line_and_cut():
    assert plain("a\n b\x1b" * 9, 12) == "a b\\x1ba b\\…"
    assert len(plain("a" * 1000, 12)) == 12


def test_data_are_unchanged_unless_a_terminal_shows_them(capsys):
    printing.echo_data("\x9b\n")
    assert capsys.readouterr().out == "\x9b\n"
