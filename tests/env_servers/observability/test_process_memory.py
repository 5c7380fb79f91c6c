"""The memory of a server: what large blocks leave behind."""

import platform
import subprocess
import sys

import pytest

CODE = """
import sys
from pathlib import Path
import numpy as np
from env_servers.observability import process_memory

if "return" in sys.argv:
    process_memory.stay_small()
kept = []
for _ in range(2):
    images = [np.ones(250_000, np.uint8) for _ in range(200)]
    kept.append(bytes(100_000))  # what stays above them in the C library's heap
    del images
print(int(Path("/proc/self/statm").read_text().split()[1]) * 4096 >> 20)
"""


def resident(*arguments: str) -> int:
    """Return the MiB that a process has after 200 images came and went twice."""
    command = [sys.executable, "-c", CODE, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_large_blocks_are_given_back():
    assert resident() - resident("return") > 30
