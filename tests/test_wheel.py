"""The distribution outside the source tree: an sdist, the wheel built of it, and what both hold."""

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest
from packaging.metadata import Metadata

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PROJECT = (ROOT / "pyproject.toml").read_text()
README = (ROOT / "README.md").read_text()
PACKAGES = ("agentgyms", "env_servers", "harness")
SMALL = (
    "run.steps=2",
    "run.threads=1",
    "policy.device=cpu",
    "policy.tiny={layers=1, hidden=16, heads=2, feed_forward=16, vocabulary=300, max_length=512}",
    "env.max_turns=3",
    "rollout.tasks_per_step=1",
    "warmstart.episodes=2",
    "warmstart.steps=1",
    "eval.tasks=1",
)
SERVED = """

from env_servers import create_app
client = create_app("agentgyms/Corridor-v0", token="").test_client()
for path in ("/openapi.json", "/healthz", "/", "/play"):
    reply = client.get(path)
    print(path, reply.status_code, reply.mimetype, len(reply.data) > 10)
"""


def output(words, **options):
    """Return what a program prints; its errors are the test's."""
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """A function that does what `make dist` does, for an address; it returns sdist and wheel."""
    program = tmp_path_factory.mktemp("program")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    wanted = ["build", "hatchling", "twine"]
    output([*pip, "-c", ROOT / "constraints.txt", "--target", program, *wanted])
    there = {**os.environ, "PYTHONPATH": str(program)}

    def run(url, **options):
        folder = tmp_path_factory.mktemp("built")
        words = [sys.executable, ROOT / ".github/dist.py", folder, url]
        assert output(words, env=there, **options).count("PASSED") == 2  # by twine
        (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
        return sdist, wheel

    return run


@pytest.fixture(scope="module")
def built(build):
    """An sdist of this tree, and the wheel that is built of it."""
    return build("")


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """A runner of the programs of a fresh environment with the wheel, from an empty folder.

    What the wheel depends on comes from the environment of the tests, our own packages do not.
    """
    folder = tmp_path_factory.mktemp("installed")
    output([sys.executable, "-m", "venv", "--without-pip", folder / "venv"])
    python = folder / "venv/bin/python"
    pip = [sys.executable, "-m", "pip", "--python", python, "--quiet"]
    output([*pip, "install", "--no-deps", "--disable-pip-version-check", built[1]])
    (site,) = (folder / "venv/lib").glob("python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "AGENTGYMS_"))}

    run_in = tmp_path_factory.mktemp("empty")

    def run(program, *words):
        return output(
            [folder / "venv/bin" / program, *words], cwd=run_in, env={**kept, "TQDM_DISABLE": "1"}
        )

    run.folder, run.site = run_in, site
    return run


def sources():
    """Return the names of all files of the packages in this tree, and of the module beside them."""
    return {"agentgyms_tasks.py"} | {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_every_file_of_the_packages_is_in_both(built):
    sdist, wheel = built
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith(PACKAGES)}
    assert {name for name in packed if ".dist-info/" not in name} == sources()
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert sources() <= names
    files = {"pyproject.toml", "README.md", "LICENSE", "Makefile", "constraints.txt"}
    assert files | {"docs/training.md", "examples/train_by_hand.py"} <= names


def test_the_same_tree_gives_the_same_bytes(build, built, tmp_path):
    again = build("", cwd=tmp_path, umask=0o077)
    for before, after in zip(built, again, strict=True):
        assert before.name == after.name
        assert sha256(before.read_bytes()).digest() == sha256(after.read_bytes()).digest()


def described(wheel):
    """Return the metadata of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Metadata.from_email(archive.read(name))


LINKS = re.compile(r"(!?)\[[^\]]*\]\(([^)#]+)")


def test_metadata_name_the_address_that_is_given(build):
    url, project = "https://host.example/owner/name", tomllib.loads(PROJECT)["project"]
    made = described(build(f"{url}/")[1])
    tag = f"v{project['version']}"
    assert made.project_urls == {
        "Homepage": url,
        "Source": url,
        "Documentation": f"{url}/blob/{tag}/README.md",
        "Changelog": f"{url}/blob/{tag}/CHANGELOG.md",
        "Issues": f"{url}/issues",
    }
    links = LINKS.findall(made.description)
    assert len(links) == len(LINKS.findall(README)) > 20
    assert f"pip install 'agentgyms[harness,server] @ git+{url}@{tag}'" in made.description
    assert "pip install -e" not in made.description
    for mark, link in links:
        assert link.startswith("https://"), link
        kind = "raw" if mark else "blob"
        path = link.removeprefix(f"{url}/{kind}/{tag}/")
        assert path == link or (ROOT / path).exists()
        assert not mark or path != link


def test_without_an_address_the_readme_is_that_of_the_tree(built):
    made = described(built[1])
    assert not made.project_urls
    assert made.description == README


def test_our_packages_come_from_the_wheel(installed):
    code = f"import {', '.join(PACKAGES)}; print(*({', '.join(f'{p}.__file__' for p in PACKAGES)}))"
    assert all(
        Path(file).is_relative_to(installed.site)
        for file in installed("python", "-c", code).split()
    )


def test_the_programs_know_what_is_packed(installed):
    versions = installed("agentgyms", "--version")
    assert versions.startswith("agentgyms, version ")
    assert re.search(r"agentgyms/ALFWorld-v0 +generated-\d", versions)
    ids = {line.split()[0] for line in installed("agentgyms", "list").splitlines()}
    assert {"agentgyms/ALFWorld-v0", "agentgyms/WebShop-v0"} <= ids
    recipes = {line.split()[0] for line in installed("harness", "recipes").splitlines()}
    assert recipes == {line.split()[0] for line in output_here("recipes").splitlines()}
    assert len(recipes) > 50
    assert installed("harness", "methods") == output_here("methods")


def output_here(command):
    """Return what a command of the harness prints in this tree."""
    there = {**os.environ, "PYTHONPATH": str(ROOT)}
    return output([sys.executable, "-m", "harness", command], env=there)


@pytest.mark.parametrize("name", ["ALFWorld", "SOTOPIA", "SearchQA", "VisualSokoban", "WebShop"])
def test_environments_have_their_tables(installed, name):
    told = installed("agentgyms", "record", f"agentgyms/{name}-v0", f"{name}.jsonl", "--seed", 3)
    assert told == f"1 episodes, 1 solved, in {name}.jsonl\n"
    assert "states agree" in installed("agentgyms", "replay", f"{name}.jsonl")


def test_the_server_has_its_description_and_pages(installed):
    lines = installed("python", "-c", SERVED).splitlines()
    told = {line.split()[0]: line.split()[1:] for line in lines}
    assert told["/openapi.json"] == ["200", "application/json", "True"]
    assert told["/healthz"][0] == "200"
    assert told["/play"] == ["200", "text/html", "True"]


def test_a_tiny_run_trains_and_is_shown(installed):
    changes = [word for change in SMALL for word in ("--set", change)]
    assert "runs/corridor" in installed("harness", "train", "corridor-tiny", *changes)
    assert (installed.folder / "runs/corridor/curve.png").is_file()
    words = ("--env", "Corridor", "--model", "runs/corridor", "--tasks", 2, "--name", "tiny")
    installed("harness", "eval", *words, "--set", "model.device=cpu")
    page = installed.folder / "evaluations/tiny/page.html"
    assert "<script" in page.read_text()
    installed("harness", "report", "evaluations/tiny", "--html", "report.html", "--reported")
    installed("harness", "credit", "--example", "--html", "credit.html")
    assert "<script" in (installed.folder / "credit.html").read_text()
    told = installed("harness", "credit", "audit", "--truth", "searchqa-v1", "--methods", "grpo")
    assert told.startswith("SearchQA test, generated tasks")
