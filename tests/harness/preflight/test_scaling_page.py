"""The figures of docs/scaling.md for 64 GPUs are those of the dry run."""

import re
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from harness.cli.main import main

PAGE = (Path(__file__).parents[3] / "docs/scaling.md").read_text(encoding="utf-8")
HEAD = "| `harness train ... --dry-run --gpus 64 --gpu-memory 80` |"
MANY = ["--set", "rollout.tasks_per_step=1250", "--set", "rollout.max_live=10000"]
SERVED = {
    "policy.model": "Qwen/Qwen2.5-32B-Instruct",
    "rollout.backend": "server",
    "rollout.urls": '["http://127.0.0.1:8000"]',
    "rollout.engine": "{}",
    "rollout.sleep": "false",
}
COLUMNS = [
    ["appworld-gvpo-32b"],
    ["appworld-gvpo-32b", *MANY],
    ["alfworld-gigpo-7b", *MANY]
    + [word for key, value in SERVED.items() for word in ("--set", f"{key}={value}")],
]
SAYS = {
    "tokens of a step": r"\b{} tokens, ",
    "memory of a GPU": r"\b{}  at most at once",
    "weights of a server": r"servers beside: {} of weights",
    "keys and values of all": r"weights, {} of keys and values",
    "old log-probabilities": r"old log-probabilities {},",
    "the reference's": r"reference {},",
    "update": r"update {};",
}


@pytest.mark.skipif(torch.__version__ < "2.7", reason="torch 2.6 keeps attention's weights")
@pytest.mark.parametrize("column", range(3))
def test_the_table_says_what_the_dry_run_says(column):
    options = ["--dry-run", "--gpus", "64", "--gpu-memory", "80"]
    planned = CliRunner().invoke(main, ["train", *COLUMNS[column], *options]).output
    rows = PAGE.partition(HEAD)[2].partition("\n\n")[0].splitlines()[2:]
    assert len(rows) == len(SAYS)
    for row in rows:
        name, *cells = (cell.strip() for cell in row.strip("|").split("|"))
        pattern = next(pattern for begin, pattern in SAYS.items() if name.startswith(begin))
        if cells[column]:
            said = pattern.format(re.escape(cells[column]))
            assert re.search(said, " ".join(planned.split())) or re.search(said, planned), name
        else:
            assert "reference 8" not in planned
