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
    *(str(p.relative_to(ROOT)) for p in sorted(ROOT.glob("docs/**/*.md"))),
]


def anchors(path):
    """Return the anchors of a page's headings, as GitHub names them."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    found = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


@pytest.mark.parametrize("page", PAGES)
def test_links_paths_and_anchors_exist(page):
    path = ROOT / page
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", path.read_text()):
        file = path.parent / target if target else path
        assert file.exists(), f"{page} links to {target}"
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), f"{page} links to {target}#{anchor}"


@pytest.mark.parametrize("package", ["agentgyms", "env_servers", "harness"])
def test_the_architecture_page_lists_the_rooms_in_their_order(package):
    text = (ROOT / "ARCHITECTURE.md").read_text()
    assert len(text.encode()) <= 12_000, "the page is an essay"
    block = text.partition(f"## {package}:")[2].split("```")[1]
    listed = [re.split(r"/|\s", line)[0] for line in block.strip().splitlines()]
    hidden = {"__init__", "__main__", "registration"} - set(listed)
    assert listed == [room for room in ORDER[package] if room not in hidden]
