"""Scripts that run in the Python with the packages that games are compared with."""

import json
import os
import subprocess
from pathlib import Path

HERE = Path(__file__).parent


def peer(script, asked):
    """Run a script of this folder in that Python; return what it says."""
    done = subprocess.run(
        [os.environ["AGENTGYMS_ADAPTERS_PYTHON"], str(HERE / script)],
        input=json.dumps(asked),
        env={**os.environ, "PYTHONPATH": str(HERE.parents[3])},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])
