"""A disk that is soon full: a small file system in memory, or a limit of the size of files."""

import resource
import subprocess
from contextlib import contextmanager

PAGE = 4096


@contextmanager
def small_disk(folder, pages):
    """Let `folder` take so many pages, or where nothing can be mounted each file of this process.

    Children that are started within have the same disk, or the same limit.
    """
    folder.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={pages * PAGE}", "none", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode == 0:
        try:
            yield folder
        finally:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
        return
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (pages * PAGE, before[1]))
    try:
        yield folder
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
