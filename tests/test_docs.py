"""The pages' code is executed: documentation that lies fails here."""

import re
from pathlib import Path

import pytest
from test_architecture import ORDER

ROOT = Path(__file__).parents[1]


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


@pytest.mark.parametrize("package", ["agentgyms", "env_servers", "harness"])
def test_the_architecture_page_lists_the_rooms_in_their_order(package):
    text = (ROOT / "ARCHITECTURE.md").read_text()
    assert len(text.encode()) <= 12_000, "the page is an essay"
    block = text.partition(f"## {package}:")[2].split("```")[1]
    listed = [re.split(r"/|\s", line)[0] for line in block.strip().splitlines()]
    hidden = {"__init__", "__main__", "registration"} - set(listed)
    assert listed == [room for room in ORDER[package] if room not in hidden]
