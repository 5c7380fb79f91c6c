"""Builds an sdist and the wheel of it: `python .github/dist.py FOLDER [URL]`, with PyPI's `build`.

With the address of the project, the metadata name it and its pages, the README's links and pictures
lead there, to the files of this version's tag, and its lines install from there; without it they
are as in the source tree. `twine` checks both. The same tree gives the same bytes: dates in the
archives are hatchling's constant one, or SOURCE_DATE_EPOCH.
"""

import hashlib
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

import install_lines

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^):#]+)(#[^)]*)?\)")


def with_urls(project: str, url: str) -> str:
    """Return the text of pyproject.toml with a table of addresses.

    Args:
        project: The text.
        url: The address of the repository, as GitHub and GitLab have them.
    """
    version = tomllib.loads(project)["project"]["version"]
    pages = {
        "Homepage": url,
        "Source": url,
        "Documentation": f"{url}/blob/v{version}/README.md",
        "Changelog": f"{url}/blob/v{version}/CHANGELOG.md",
        "Issues": f"{url}/issues",
    }
    return "\n".join([project, "[project.urls]", *(f'{k} = "{v}"' for k, v in pages.items()), ""])


def with_absolute_links(readme: str, url: str, version: str) -> str:
    """Return the text of README.md with addresses in place of the paths of files that exist."""

    def absolute(found: re.Match[str]) -> str:
        mark, words, path, anchor = found.groups()
        if not (ROOT / path).exists():
            return found[0]
        kind = "raw" if mark else "blob"
        return f"{mark}[{words}]({url}/{kind}/v{version}/{path}{anchor or ''})"

    return LINK.sub(absolute, readme)


def main(folder: str, url: str = "") -> None:
    """Build both into a folder."""
    url = url.rstrip("/")
    if url and not re.fullmatch(r"https://[\w.-]+(:\d+)?(/[\w.~-]+)+", url):
        sys.exit(f"expected an address such as https://host/owner/name, got {url!r}")
    with tempfile.TemporaryDirectory() as work:
        _build("--sdist", "--outdir", work, ROOT)
        [sdist] = Path(work).glob("*.tar.gz")
        with tarfile.open(sdist) as archive:
            archive.extractall(work, filter="data")
        tree = sdist.with_name(sdist.name.removesuffix(".tar.gz"))
        (tree / "PKG-INFO").unlink()  # it is written anew
        if url:
            project, readme = tree / "pyproject.toml", tree / "README.md"
            text = project.read_text(encoding="utf-8")
            version = tomllib.loads(text)["project"]["version"]
            project.write_text(with_urls(text, url), encoding="utf-8")
            text = readme.read_text(encoding="utf-8")
            text = install_lines.written(text, f"{url}@v{version}")
            readme.write_text(with_absolute_links(text, url, version), encoding="utf-8")
        _build("--outdir", folder, tree)
    made = [*Path(folder).glob("*.whl"), *Path(folder).glob("*.tar.gz")]
    _run("twine", "check", "--strict", *made)
    for file in made:
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        print(f"{digest}  {file}")  # noqa: T201


def _build(*words: str | Path) -> None:
    """Build with the hatchling that is installed, for another one may write other bytes."""
    _run("build", "--no-isolation", *words)


def _run(module: str, *words: str | Path) -> None:
    subprocess.run([sys.executable, "-m", module, *map(str, words)], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
