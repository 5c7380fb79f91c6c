"""What the container with the AppWorld engine does before it serves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentgyms.envs.appworld.sandbox import install
from env_servers import appworld_engine


def test_an_image_without_appworld_says_how_to_build_one_with_it(tmp_path):
    with pytest.raises(FileNotFoundError, match="--build-arg APPWORLD=yes"):
        appworld_engine.unpack(tmp_path, tmp_path / "new")
    done = subprocess.run(
        [sys.executable, "-m", "env_servers.appworld_engine", "agentgyms/AppWorld-v0"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(
        "AppWorld's apps cannot be unpacked: /opt/appworld has no package"
    )


@pytest.mark.appworld
def test_apps_are_unpacked_into_a_copy(tmp_path):
    packed = Path(os.environ["AGENTGYMS_APPWORLD_PYTHON"]).parents[1]
    before = sorted(packed.glob("lib/python*/site-packages/*"))
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "left over").touch()
    python = appworld_engine.unpack(packed, tmp_path / "new")
    install.check(str(python))
    code = "import appworld, pydantic; print(appworld.__file__, pydantic.__file__)"
    done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True)
    own, other = done.stdout.split()
    assert Path(own).is_relative_to(tmp_path)
    assert Path(other).is_relative_to(packed)
    assert not (tmp_path / "new" / "left over").exists()
    assert sorted(packed.glob("lib/python*/site-packages/*")) == before
