"""Another process that holds the lock of a folder."""

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]

_HOLD = """
import sys
from pathlib import Path
from harness.runs.folder_lock import FolderLock

with FolderLock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def locked(folder):
    """Hold a folder in another process within the block, which gets that process's id."""
    words = [sys.executable, "-c", _HOLD, str(folder)]
    with subprocess.Popen(
        words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout.readline() == "held\n"
        yield holder.pid
        holder.stdin.close()
