"""The soak itself, in short: servers that stay small pass it, and one that leaks does not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).parents[2] / "benchmarks" / "soak.py"

pytestmark = pytest.mark.slow


def soak(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SOAK), *arguments],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=280,
    )


@pytest.mark.parametrize(
    ("env_id", "episodes", "abandoned"),
    [("agentgyms/Corridor-v0", 1000, 100), ("agentgyms/ALFWorld-v0", 600, 0)],
)
def test_a_server_stays_small(env_id, episodes, abandoned, tmp_path):
    """A tenth of so few episodes does not fill all caches: hence the wider bound."""
    figure = tmp_path / "memory.png"
    done = soak(
        env_id, f"--episodes={episodes}", f"--abandoned={abandoned}", "--growth=0.12", "--ttl=4",
        f"--figure={figure}",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert figure.stat().st_size > 5_000


def test_a_server_that_leaks_is_found_out():
    done = soak("leaky_env:test/Leaky-v0", "--episodes=600", "--abandoned=0", "--growth=0.12")
    assert done.returncode == 1
    missed = [line for line in done.stdout.splitlines() if line.endswith("MISSED")]
    assert [line.split("  ")[0] for line in missed] == ["growth of the server"], done.stdout
