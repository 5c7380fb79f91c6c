"""The commands of `docs/papers.md` with a tiny model on generated tasks write what they name.

Of a loop, a sweep, a pattern and several patterns the first and the last are taken, and those that
another row has made; what needs a server of another model is left out.
"""

import re
import sys
from fnmatch import fnmatch
from pathlib import Path

import papers_page
import pytest
from click.testing import CliRunner
from small_recipes import QUICK, shrinking

from harness import config as configs
from harness.cli.main import main

sys.path.append(str(Path(__file__).parents[3] / "benchmarks/studies"))
import credit_figures

CALLS = papers_page.all_calls()
RUNS = {
    folder: run
    for calls in CALLS.values()
    for call in calls
    if call[0] == "train"
    for folder, run in papers_page.runs(call[1:])
}
EVALUATIONS = {
    name: call
    for calls in CALLS.values()
    for call in calls
    if call[0] == "eval"
    for name in papers_page.options(call, "--name")
}
KNOWN = {"runs": RUNS, "evaluations": EVALUATIONS}
ROWS = [row for row in papers_page.rows() if row.paper and row.lines]
WRITTEN = {
    "report": ("--curve", "--sweep", "--html", "--output"),
    "credit": ("--html",),
    "credit_figures": ("--neighbourhood",),
}
WARM = (
    "agent.style=compact",
    "agent.max_tokens=16",
    "env.max_turns=6",
    "warmstart.episodes=60",
    "warmstart.batch_size=16",
    "warmstart.steps=60",
    "warmstart.learning_rate=5e-3",
)
"""Of a run whose valid turns are compared: a model that has learned nothing has none."""

NOT_HERE = re.compile(r",(memory/credit_allocated_gib|credit/show_api_\w+)")
"""Figures of a GPU, and of a model that calls an API."""

GENERATED = {"hard": "test", "all": "test"}
"""Splits of SOTOPIA's official data: the generated games have another one."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where all runs and evaluations of the page lie; those of earlier rows stay."""
    return tmp_path_factory.mktemp("papers")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.paper} {row.number}")
def test_a_row_writes_what_it_names(row, folder, scorers, half_succeed, monkeypatch):
    monkeypatch.chdir(folder)
    page = Shrunk(scorers)
    ran = [page.call(*call) for line in row.lines for call in ends(CALLS[row, line])]
    assert any(ran)


def ends(found):
    found = list(found)
    return found[:1] + found[1:][-1:]


class Shrunk:
    """Calls commands of the page in this folder, with whatever they need made before."""

    def __init__(self, scorers):
        self.scorers = scorers

    def call(self, name, *arguments):
        """Whether it was called: what needs a server is not."""
        if "--url" in arguments:
            return False
        made = {"train": self.train, "eval": self.evaluate}.get(name, self.show)
        made(*arguments) if name in ("train", "eval") else made(name, *arguments)
        return True

    def train(self, *arguments):
        if "--print-config" in arguments:
            invoke("train", *arguments)
            return
        for folder, _ in ends(papers_page.runs(arguments)):
            self.need("runs", folder)

    def need(self, root, folder):
        """Make a run or an evaluation that is not there yet."""
        if Path(root, folder).exists():
            return
        if root == "evaluations":
            self.evaluate(*EVALUATIONS[folder][1:])
            return
        run = RUNS[folder]
        given = [*run.settings, *run.swept, f"run.name={folder!r}", f"run.seed={run.seed}"]
        small = [*shrinking(run.recipe, self.scorers, given), *QUICK, *run.swept]
        whole = configs.load(run.recipe, given)
        if whole.run.keep_rollouts:
            small.append("run.keep_rollouts=1")
        if run.swept:
            small.append(f"swept={[key.partition('=')[0] for key in run.swept]}")
        if folder == "scpo-early":
            small += WARM
        invoke("train", run.recipe, *(word for setting in small for word in ("--set", setting)))
        assert Path(root, folder, "metrics.jsonl").stat().st_size

    def evaluate(self, *arguments):
        name = papers_page.options(arguments, "--name")[0]
        model = papers_page.options(arguments, "--model")[0].removeprefix("runs/")
        self.need("runs", model)
        words, given = iter(arguments), []
        for word in words:
            value = next(words)
            if word == "--split" and model.startswith("sotopia"):
                value = GENERATED[value]
            if value.startswith("partner="):
                value = "partner=scripted"
            if not value.startswith("datasets="):
                given += [word, value]
        if not Path("evaluations", name).exists():
            invoke("eval", *given, "--tasks", "1")

    def show(self, name, *arguments):
        patterns = [word for word in arguments if word.startswith(("runs/", "evaluations/"))]
        for word in ends(patterns):
            root, folder, *_ = word.split("/")
            for needed in ends(name for name in KNOWN[root] if fnmatch(name, folder)):
                self.need(root, needed)
        words = [word for given in arguments for word in self.found(name, NOT_HERE.sub("", given))]
        if "--neighbourhood" in words:
            words += ["--encoder", f"embedding:{self.scorers['embedding']}"]
        if "--from-step" in words:
            words[words.index("--from-step") + 1] = "1"
        if "last-5" in words:
            words[words.index("last-5")] = "last-3"
        output = invoke(name, *words)
        assert output.count("\n") > 2 or "--html" in words
        for option in WRITTEN.get(name, ()):
            for written in papers_page.options(words, option):
                assert Path(written).stat().st_size > 1000

    def found(self, name, word):
        """What a word stands for: the folders of a pattern, a tiny scorer for a big one."""
        root, _, rest = word.partition("/")
        if root in KNOWN and rest:
            pattern, *below = rest.split("/")
            chosen = sorted(path for path in Path(root).iterdir() if fnmatch(path.name, pattern))
            if below:
                chosen = sorted(chosen[0].glob("rollouts/step-*.jsonl.gz"))
            return [str(path) for path in chosen]
        key, _, value = word.partition("=")
        if name in ("credit", "credit_figures") and value in self.scorers:
            return [f"{key}={value}:{self.scorers[value]}"]
        return [word]


def invoke(*arguments):
    """What a command prints."""
    name, *words = map(str, arguments)
    program = credit_figures.main if name == "credit_figures" else main
    given = words if name == "credit_figures" else [name, *words]
    done = CliRunner().invoke(program, given)
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output
