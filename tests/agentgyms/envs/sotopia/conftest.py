"""What tests of SOTOPIA share: the package itself, and the official encounters."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from small_profiles import DIGESTS

from agentgyms.envs.sotopia.official import encounters
from agentgyms.models.client import ChatClient

Peer = Callable[..., Any]


@pytest.fixture
def small_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the splits have the scenarios of small_profiles.py in place of the benchmark's."""
    monkeypatch.setattr(encounters, "scenario_digests", lambda: DIGESTS)


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let failed requests to models be tried again at once."""
    monkeypatch.setitem(ChatClient.__init__.__kwdefaults__, "first_pause_s", 0.01)


@pytest.fixture(scope="module")
def benchmark() -> Path:
    """Return the folder of the benchmark's own profiles."""
    given = os.environ.get("AGENTGYMS_TEST_DATA")
    if not given or not (folder := Path(given, "sotopia")).is_dir():
        pytest.skip("AGENTGYMS_TEST_DATA names no folder with sotopia/environments.json")
    return folder


@pytest.fixture(scope="session")
def peer() -> Iterator[Peer]:
    """Asks sotopia 0.1.4: `peer(**request)`, see sotopia_peer.py."""
    python = os.environ["AGENTGYMS_SOTOPIA_PYTHON"]
    program = Path(__file__).with_name("sotopia_peer.py")
    with subprocess.Popen(
        [python, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def ask(**request: Any) -> Any:
            assert process.stdin is not None
            assert process.stdout is not None
            print(json.dumps(request), file=process.stdin, flush=True)
            answer = process.stdout.readline()
            assert answer, "sotopia's process ended: its errors are above"
            return json.loads(answer)

        yield ask
        process.stdin.close()
