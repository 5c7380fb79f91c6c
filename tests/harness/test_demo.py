"""The demo of `make train`, whole: minutes on two cores."""

import pytest

from harness import config as configs
from harness import metrics, starting


@pytest.mark.slow
def test_the_demo_learns(request, tmp_path):
    if "slow" not in (request.config.getoption("markexpr") or ""):
        pytest.skip("trains for minutes: pytest -m slow")
    settings = [f"run.output='{tmp_path}'", "run.name='demo'", "run.seed=1"]
    starting.start(configs.load("alfworld-tiny", settings)).run()
    records = metrics.read(tmp_path / "demo")
    for split in ("valid_seen", "valid_unseen"):
        success = [r[name] for r in records if (name := f"eval/{split}/success") in r]
        assert success[-1] - success[0] >= 0.25, f"{split}: {success}"
    assert (tmp_path / "demo/curve.png").stat().st_size > 10_000
