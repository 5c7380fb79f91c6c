"""Scripts that run in the Python with the packages that adapters are for."""

import json
import os
import subprocess
from pathlib import Path

PYTHON = os.environ.get("AGENTGYMS_ADAPTERS_PYTHON", "")  # the other tests run without it
HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def peer(script, asked, also=""):
    """Run a script of this folder in that Python; return what it says.

    `also` is a folder of packages, such as PyTorch, that it takes from there.
    """
    done = subprocess.run(
        [PYTHON, str(HERE / script)],
        input=json.dumps(asked),
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{also}" if also else str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])  # a library may have logged before
