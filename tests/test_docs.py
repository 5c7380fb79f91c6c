"""The pages' code is executed: documentation that lies fails here."""

import re
import shlex
from pathlib import Path

import pytest

from agentgyms.cli import main as agentgyms_cli
from agentgyms.errors import DataMissing
from env_servers import Server, create_app
from harness import checks
from harness import config as configs
from harness.cli import main as harness_cli

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def test_own_environment_in_forty_lines():
    blocks = BLOCK.findall((ROOT / "docs/own_environment.md").read_text())
    body = blocks[0].partition("class ")[2]
    assert sum(bool(line.strip()) for line in body.splitlines()) <= 40
    namespace = {}
    for block in blocks:
        exec(compile(block, "docs/own_environment.md", "exec"), namespace)


@pytest.fixture
def alfworld_url():
    with Server(create_app("agentgyms/ALFWorld-v0")) as server:
        yield server.url


@pytest.mark.parametrize("page", ["docs/sokoban.md", "docs/searchqa.md", "docs/webshop.md"])
def test_the_pages_of_environments_run_as_they_stand(page):
    namespace = {"__name__": "page"}
    for block in BLOCK.findall((ROOT / page).read_text()):
        exec(compile(block, page, "exec"), namespace)


def test_the_readme_runs_as_it_stands(alfworld_url):
    namespace = {"__name__": "readme"}
    for block in BLOCK.findall((ROOT / "README.md").read_text()):
        code = block.replace("http://127.0.0.1:8001", alfworld_url)
        exec(compile(code, "README.md", "exec"), namespace)


def test_the_commands_of_the_readme_exist():
    text = (ROOT / "README.md").read_text()
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for target in re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE):
        assert target in targets, f"README names `make {target}`"
    for program, main in (("agentgyms", agentgyms_cli), ("harness", harness_cli)):
        for name in re.findall(rf"^{program} ([a-z]+)", text, re.MULTILINE):
            assert name in main.commands, f"README names `{program} {name}`"


def test_the_training_commands_of_the_readme_are_accepted():
    lines = re.findall(r"^harness train ([^-].*)", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert len(lines) >= 3
    for line in lines:
        recipe, *options = shlex.split(line, comments=True)
        assert options[::2] == ["--set"] * (len(options) // 2)
        try:
            checks.check(configs.load(recipe, options[1::2]))
        except DataMissing:
            assert "official" in recipe or "gigpo" in recipe


PAGES = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    *(str(p.relative_to(ROOT)) for p in sorted(ROOT.glob("docs/*.md"))),
]


@pytest.mark.parametrize("page", PAGES)
def test_links_and_paths_exist(page):
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (ROOT / page).parent.joinpath(target).exists(), f"{page} links to {target}"


def test_the_architecture_page_names_every_room():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    for package in ("agentgyms", "env_servers", "harness"):
        for path in (ROOT / package).rglob("*.py"):
            if path.name != "__init__.py" or path.parent.name not in text:
                assert path.name in text, f"ARCHITECTURE.md does not name {path.relative_to(ROOT)}"
