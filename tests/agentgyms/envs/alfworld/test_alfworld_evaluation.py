"""`harness eval` on the official games that results are reported on, played by the expert."""

import sys
import time

import pytest

from harness.config import EvaluationConfig, build
from harness.evaluation import results
from harness.reporting import run_and_report


@pytest.mark.data
@pytest.mark.parametrize(("split", "games"), [("valid_seen", 140), ("valid_unseen", 134)])
def test_the_expert_wins_every_official_game(tmp_path, real_games, split, games, capsys):
    values = {
        "run": {"output": str(tmp_path)},
        "env": {"id": "ALFWorld", "split": split, "kwargs": {"source": "official"}},
        "model": {"name": "expert"},
    }
    began = time.monotonic()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENTGYMS_DATA", str(real_games.parent))
        folder = run_and_report.run(build(EvaluationConfig, values))
    seconds = time.monotonic() - began
    with capsys.disabled():
        sys.stdout.write(f" {games} games of {split}: {seconds:.1f} s ")
    told = results.read_json(folder / results.RESULT)
    assert told["episodes"] == {"planned": games, "finished": games, "missing": 0}
    assert told["figures"]["success"]["mean"] == 1.0
    assert seconds < 300
