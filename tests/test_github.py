"""The files for GitHub: workflows call what exists, on the versions that the package names."""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest
import shell_calls
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TARGETS = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("[!c]*.yml"))
ACTION = re.compile(r"[\w-]+/[\w-]+@(v\d+|release/v\d+)")


def read(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_what_exists(path, tmp_path):
    workflow = read(path)
    assert workflow["name"] == path.stem
    assert workflow[True], "YAML reads `on` as true"
    assert workflow["permissions"] == {"contents": "read"}, "jobs that need more say so themselves"
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 60
        needed = job.get("needs", [])
        assert {needed} <= set(workflow["jobs"]) if isinstance(needed, str) else not needed
    scripts = [step["run"] for step in steps(workflow) if "run" in step]
    begin = "GITHUB_REF_NAME=v1 GITHUB_SERVER_URL=https://host GITHUB_REPOSITORY=a/b"
    called = shell_calls.calls([begin, *scripts], ["gh", "make", "pip", "python"], tmp_path)
    for program, *words in (call for calls in called for call in calls):
        if program == "make":
            assert words[0] in TARGETS
            paths = re.findall(r"(?<=[=\s])[\w/]+\.py", " ".join(words))
            assert all((ROOT / name).is_file() for name in paths)
        if program == "python" and words[0] != "-m":
            assert (ROOT / words[0]).is_file()
    for step in steps(workflow):
        assert ("run" in step) != ("uses" in step)
        assert "uses" not in step or ACTION.fullmatch(step["uses"]), step


def test_versions_are_those_of_the_package():
    told = {name.rpartition(" ")[2] for name in PROJECT["classifiers"] if "Python :: 3." in name}
    checks = read(ROOT / ".github/workflows/checks.yml")
    assert set(checks["jobs"]["tests"]["strategy"]["matrix"]["python"]) == told
    for path in WORKFLOWS:
        for step in steps(read(path)):
            version = step.get("with", {}).get("python-version", "${{ matrix.python }}")
            assert version in told | {"${{ matrix.python }}"}
    lowest = min(told, key=lambda version: int(version.partition(".")[2]))
    assert PROJECT["requires-python"] == f">={lowest}"


def requirements(names):
    """Yield requirements, in place of our own extras those that they stand for."""
    for one in map(Requirement, names):
        if one.name != PROJECT["name"]:
            yield one
        for extra in one.extras if one.name == PROJECT["name"] else ():
            yield from requirements(PROJECT["optional-dependencies"][extra])


def test_the_lowest_versions_are_those_that_a_lane_tests():
    lines = (ROOT / "constraints-lowest.txt").read_text().splitlines()
    pinned = [Requirement(line) for line in lines if not line.startswith("#")]
    pins = {canonicalize_name(one.name): one for one in pinned}
    assert all(re.fullmatch(r"==[^*,]+", str(pin.specifier)) for pin in pins.values())
    named = list(requirements([*PROJECT["dependencies"], "agentgyms[harness,dev]"]))
    assert len({one.name for one in named}) > 25
    for one in named:
        lowest = [Version(part.version) for part in one.specifier if part.operator == ">="]
        pin = str(pins[canonicalize_name(one.name)].specifier)
        assert lowest == [Version(pin.removeprefix("=="))], one
    job = read(ROOT / ".github/workflows/checks.yml")["jobs"]["lowest"]
    assert job["steps"][-1]["run"].endswith(" CONSTRAINTS=constraints-lowest.txt")
    assert PROJECT["requires-python"] == f">={job['steps'][1]['with']['python-version']}"


def test_the_checks_are_those_of_contributing():
    runs = [step.get("run", "") for step in steps(read(ROOT / ".github/workflows/checks.yml"))]
    asked = {run.split()[1] for run in runs if run.startswith("make")}
    assert asked == {"test", "check", "docs"}
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert all(f"make {name}" in text for name in asked)


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_issue_forms_are_forms(path):
    form = read(path)
    assert form["name"]
    assert form["description"]
    fields = [one for one in form["body"] if one["type"] != "markdown"]
    assert {one["type"] for one in fields} <= {"input", "textarea", "dropdown", "checkboxes"}
    names = [one["id"] for one in fields]
    assert len(names) == len(set(names))
    assert all(one["attributes"]["label"] for one in fields)
    assert any(one.get("validations", {}).get("required") for one in fields)


def test_there_is_a_form_for_each_kind_of_issue():
    assert [path.stem for path in FORMS] == ["bug", "environment", "method"]
    assert read(ROOT / ".github/dependabot.yml")["version"] == 2
    template = (ROOT / ".github/pull_request_template.md").read_text(encoding="utf-8")
    for target in re.findall(r"`make (\w+)`", template):
        assert target in TARGETS


def program(name):
    """Return the module of a program in `.github`."""
    spec = importlib.util.spec_from_file_location(name, ROOT / f".github/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def release_notes():
    return program("release_notes").notes


@pytest.mark.parametrize("url", ["http://host/a", "https://host", 'https://host/a"b', "host/a/b"])
def test_a_distribution_has_no_address_that_is_none(url, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / ".github")  # as for a program that is run
    with pytest.raises(SystemExit, match="expected an address such as https://host/owner/name"):
        program("dist").main(str(tmp_path), url)
    assert not list(tmp_path.iterdir())


def test_notes_of_a_release_are_its_section_of_the_changelog(release_notes):
    project = '[project]\nversion = "0.2.0"\n'
    log = "# Changelog\n\n## 0.2.0, 2026-12-01\n\n### New\n- a\n\n## 0.1.0, 2026-11-01\n- b\n"
    assert release_notes("v0.2.0", project, log) == "### New\n- a\n"
    for tag, text in (("v0.1.0", log), ("v0.2.0", log.replace("2026-12-01", "unreleased"))):
        with pytest.raises(SystemExit, match=r"expected v0\.2\.0|has no section"):
            release_notes(tag, project, text)


def test_the_changelog_has_the_version_of_the_package():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first = re.search(r"^## (\S+), (unreleased|\d{4}-\d\d-\d\d)$", text, re.MULTILINE)
    assert first[1] == PROJECT["version"]
