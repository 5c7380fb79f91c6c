"""CONTRIBUTING.md is followed: its first change, with its test, in a copy of the checkout."""

import os
import re
import shlex
import shutil
import subprocess
import sys

import doc_blocks
import printed
import pytest

ROOT = doc_blocks.ROOT
BLOCKS = [block for block in doc_blocks.ALL if block.page == "CONTRIBUTING.md"]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


@pytest.fixture
def checkout(tmp_path):
    """A copy of what the tests need of the checkout."""
    for name in ("agentgyms", "env_servers", "harness", "tests"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def changed(text, diff):
    """Return a text with each part of a diff applied at its one place."""
    for part in diff.split("@@\n"):
        lines = part.splitlines(keepends=True)
        before = "".join(line[1:] for line in lines if line[0] in " -")
        assert text.count(before) == 1, before
        text = text.replace(before, "".join(line[1:] for line in lines if line[0] in " +"))
    return text


def follow(block, folder):
    """Run the calls of pytest of a block, and compare what they count with the comments."""
    env = {**os.environ, "PYTHONPATH": str(folder)}
    for line in block.text.splitlines():
        if not line.startswith("pytest"):
            continue
        words = [sys.executable, "-m", *shlex.split(line, comments=True), "-p", "no:cacheprovider"]
        done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True)
        counts = done.stdout.splitlines()[-1].partition(" in ")[0]
        told = line.partition("# ")[2].strip()
        assert printed.agrees(told, counts), done.stdout + done.stderr


@pytest.mark.slow
def test_the_first_change_is_as_the_page_says(checkout):
    path, source = re.findall(
        r"\*\*First a test.*?`([\w/.]+)`.*?Then the change\*\*, in `([\w/.]+)`", PAGE, re.DOTALL
    )[0]
    for block in BLOCKS:
        if block.language == "python":
            (checkout / path).write_text(block.text)
        elif block.language == "diff":
            file = checkout / source
            file.write_text(changed(file.read_text(), block.text))
        else:
            follow(block, checkout)
    assert "wait" in (checkout / source).read_text()


def test_folders_and_files_that_the_page_names_exist():
    names = re.findall(r"`((?:tests|docs|harness|agentgyms|benchmarks|\.github)/[\w./]*)`", PAGE)
    made = "tests/agentgyms/envs/test_corridor.py"
    assert len(names) > 8
    for name in names:
        assert name == made or (ROOT / name.partition("TARGET")[0]).exists(), name
