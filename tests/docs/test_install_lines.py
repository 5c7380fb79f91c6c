"""Install lines of pages and examples: one form today, another on the day of publication."""

import importlib.util
import re
import shlex
import tomllib

import doc_blocks
import pytest
from packaging.requirements import Requirement

from agentgyms.core import imports

ROOT = doc_blocks.ROOT
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
SPEC = importlib.util.spec_from_file_location("lines", ROOT / ".github/install_lines.py")
LINES = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(LINES)
PLACE = "https://host.example/owner/name@v1.2.3"


def ours(text):
    """Return what the install lines of a text name, without those of a file of requirements."""
    found = re.findall(r"pip install ((?:-e )?(?:'[^']*'|[^\s`]+))", text)
    return [one for one in found if re.search(r"agentgyms(?![\w-])|\.\[|-e \.", one)]


def test_every_page_has_the_line_of_today():
    for page in LINES.PAGES:
        text = page.read_text(encoding="utf-8")
        wanted = "run: python .github/install_lines.py"
        assert LINES.written(text) == text, f"{page.relative_to(ROOT)} has another form: {wanted}"


@pytest.mark.parametrize("page", ["README.md", "docs/install.md", "docs/clients.md"])
def test_one_switch_changes_all_lines_of_a_page(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    before = ours(LINES.written(text, published=False))
    assert before
    assert all(shlex.split(one)[:1] == ["-e"] for one in before)
    for address in ("", PLACE):
        changed = LINES.written(text, address, published=not address)
        assert "# in a checkout" not in changed
        assert LINES.written(changed, address, published=not address) == changed
        named = [Requirement(*shlex.split(one)) for one in ours(changed)]
        assert {one.name for one in named} == {"agentgyms"}
        assert {one.url for one in named} == {f"git+{address}" if address else None}
        extras = [re.findall(r"\[(.*)\]", one) for one in before]
        assert [sorted(one.extras) for one in named] == [
            sorted(names[0].split(",")) if names else [] for names in extras
        ]


def test_the_page_on_installing_has_every_extra():
    text = (ROOT / "docs/install.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ((?:`\w+` ?)+)\|", text, re.MULTILINE)
    told = [name for row in rows for name in re.findall(r"\w+", row)]
    assert sorted(told) == sorted(EXTRAS.keys() - {"dev", "fuzz"})


@pytest.mark.parametrize("extra", sorted(EXTRAS))
def test_names_of_extras_are_the_same_for_every_installer(extra):
    """Installers compare them as PEP 685 writes them."""
    assert re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", extra)
    assert imports.install(extra).startswith("pip install ")
