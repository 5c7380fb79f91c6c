"""All Python of README and documentation runs, and prints what its comments say."""

import ast
import json
import tomllib

import doc_blocks
import printed
import pytest
import yaml

from env_servers import Server, create_app

URL = "http://127.0.0.1:8001"
PYTHON = doc_blocks.of("python")


@pytest.fixture(scope="module")
def url():
    with Server(create_app("agentgyms/ALFWorld-v0", token="")) as server:
        yield server.url


def awaited(block):
    """The error that a block is known to end in where something is missing, if any."""
    known = [row for row in doc_blocks.KNOWN["python"] if block.text.startswith(row["begins"])]
    return known[0]["raises"] if known else ""


@pytest.mark.parametrize(
    "page", sorted({b.page for b in PYTHON if not doc_blocks.elsewhere(b.page)})
)
def test_a_page_runs_and_prints_what_it_says(page, url, tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTGYMS_DATA", str(tmp_path / "data"))
    for name in ("ALFWORLD", "APPWORLD"):
        monkeypatch.delenv(f"AGENTGYMS_{name}_PYTHON", raising=False)
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "page"}
    for block in PYTHON:
        if block.page != page:
            continue
        code = block.text.replace(URL, url)
        try:
            printed.run(code, str(block), namespace)
        except Exception as error:
            if type(error).__name__ != awaited(block):
                raise


def test_every_block_has_a_language_that_is_tested():
    for block in doc_blocks.ALL:
        known = ("python", "bash", "toml", "yaml", "json", "diff", "text")
        assert block.language in known, f"{block}: write one of {', '.join(known)} behind its ```"


@pytest.mark.parametrize("block", doc_blocks.of("toml"), ids=str)
def test_toml_is_toml(block):
    assert tomllib.loads(block.text)


@pytest.mark.parametrize("block", doc_blocks.of("yaml"), ids=str)
def test_yaml_is_yaml(block):
    assert yaml.safe_load(block.text)


@pytest.mark.parametrize("block", doc_blocks.of("json"), ids=str)
def test_json_is_json(block):
    assert [json.loads(line) for line in block.text.splitlines()]


def test_exceptions_are_still_needed():
    for row in doc_blocks.KNOWN["python"]:
        assert any(b.text.startswith(row["begins"]) for b in PYTHON), row
        assert row["reason"]
    for row in doc_blocks.KNOWN["elsewhere"]:
        test = (doc_blocks.ROOT / row["test"]).read_text(encoding="utf-8")
        assert row["page"].rpartition("/")[2] in test, row
        assert any(block.page == row["page"] for block in PYTHON), row


def test_comments_are_compared():
    for told, text in (
        ("240", "240\n"),
        ("Task: ... time: ...", "Task: a\n\n  time: b"),
        ("... b", "a b"),
        ("['x', ...]", "['x', 'y']"),
    ):
        assert printed.agrees(told, text)
    for told, text in (("240", "24"), ("Task ... end", "Task: x"), ("b", "a b"), ("a", "a b")):
        assert not printed.agrees(told, text)
    block = "x = 2\nprint(\n    x\n)  # 2\nx + 1  # -> 3\nprint(x)\n# -> 2\nx = 3  # three\n"
    printed.run(block, "page", {})
    for wrong in ("print(1)  # 2", "1 + 1  # -> 3", "print(1)\n# -> 2", "print('é')  # e"):
        with pytest.raises(AssertionError, match="the page says"):
            printed.run(wrong, "page", {})
    assert ast.parse(block)
