"""The documentation as a web site: every page is in it, every link leads somewhere."""

import html.parser
import os
import re
import subprocess
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import test_public_surface
import yaml

from harness.config import methods

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
MADE = {"index", "architecture", "changelog", "contributing", "examples", "security"}
"""Pages that docs/hooks.py makes of the top folder and of the examples."""


def listed(entry):
    """Return the pages of a part of the navigation, in its order."""
    if isinstance(entry, str):
        return [entry]
    return [
        page
        for one in (entry.values() if isinstance(entry, dict) else entry)
        for page in listed(one)
    ]


def test_every_page_is_in_the_navigation_once():
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    pages |= {f"{name}.md" for name in MADE}
    found = listed(SITE["nav"])
    missing = sorted(pages - set(found))
    assert not missing, f"pages without a place: add {', '.join(missing)} to `nav` in mkdocs.yml"
    assert not set(found) - pages, "`nav` in mkdocs.yml names pages that are not there"
    assert len(found) == len(set(found))


def families():
    """Return the methods of each page, in the order of its headings."""
    return {
        path.stem: re.findall(r"^## (\w+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        for path in sorted((DOCS / "methods").glob("*.md"))
    }


def test_every_method_is_on_one_page():
    told = [name for names in families().values() for name in names]
    assert sorted(told) == sorted(methods.METHODS), "docs/methods has a heading for each method"


def test_the_readme_has_the_families_of_the_pages():
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n### Methods\n")[2]
    rows = re.findall(r"^\| [a-z][^|]* \| ((?:`\w+` ?)+)\|$", text, re.MULTILINE)
    pages = [set(names) for names in families().values()]
    for row in rows:
        assert any(set(re.findall(r"\w+", row)) <= names for names in pages), row
    assert len(rows) == len(pages)


def test_the_reference_has_the_public_names():
    told = {}
    for path in sorted((DOCS / "api").glob("*.md")):
        for module, options in re.findall(
            r"^::: ([\w.]+)\n((?:    .*\n)+)", path.read_text(encoding="utf-8"), re.MULTILINE
        ):
            told[module] = set(yaml.safe_load(options)["options"]["members"])
    surface = {module: set(names.split()) for module, names in test_public_surface.MODULES.items()}
    # What `agentgyms` hands on is described where it comes from.
    assert told.pop("agentgyms") == {"expert", "make_group"}
    handed_on = surface.pop("agentgyms") - {"expert", "make_group", "__version__"}
    assert handed_on <= told["agentgyms.core"] | {"errors", "keys"}
    assert told == surface


class Page(html.parser.HTMLParser):
    """Collects anchors, links and what a browser would fetch of a page."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.fetched = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.anchors |= {given[key] for key in ("id", "name") if given.get(key)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload", "preconnect"):
            self.fetched.append(given["href"])
        elif given.get("src"):
            self.fetched.append(given["src"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site as `make docs` builds it, with warnings as errors: its pages by their files."""
    python = os.environ.get("AGENTGYMS_DOCS_PYTHON", ROOT / ".venv-docs/bin/python")
    if not Path(python).exists():
        pytest.skip("needs MkDocs, which `make .venv-docs/stamp` installs")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [python, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = {path: Page(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html")}
    return {path: page for path, page in found.items() if path.name != "404.html"}


@pytest.mark.slow
def test_the_site_is_whole(site):
    pages = [path.with_suffix(".html") for path in map(Path, listed(SITE["nav"]))]
    for wanted in pages:
        assert any(path.as_posix().endswith(f"/{wanted}") for path in site), wanted
    for path, page in site.items():
        for link in [*page.links, *page.fetched]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            assert target.exists(), f"{path.name} links to {link}"
            if parts.fragment and not parts.fragment.startswith("__"):
                assert unquote(parts.fragment) in site[target].anchors, f"{path.name}: {link}"


@pytest.mark.slow
def test_a_reader_fetches_nothing_from_elsewhere(site):
    for path, page in site.items():
        assert not [link for link in page.fetched if urlsplit(link).netloc], path.name
