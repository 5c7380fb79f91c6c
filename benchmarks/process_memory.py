"""The memory of processes, as /proc has it: what is their own, and what they share."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path


def watch(child: subprocess.Popen[bytes]) -> tuple[int, int]:
    """Return the peak of a process's resident memory, and of what of it is no file, in bytes."""
    peak = own = 0
    while child.poll() is None:
        try:
            fields = fields_of(Path(f"/proc/{child.pid}/status").read_text())
        except OSError:  # it has just ended
            continue
        peak = max(peak, fields.get("VmHWM", 0))
        own = max(own, fields.get("RssAnon", 0))
        time.sleep(0.05)
    return peak, own


def fields_of(text: str) -> dict[str, int]:
    """Return the fields in kB of a text as /proc has it, in bytes."""
    return {name: int(kib) << 10 for name, kib in re.findall(r"^(\w+):\s+(\d+) kB", text, re.M)}


def memory(catalogue: str | None) -> dict[str, int]:
    """Return the memory of this process in bytes.

    Pages of the catalogue's files are counted apart, as `mapped`, and with a page that n processes
    have as its n-th part as `mapped_share`; `private` is without them, `all_private` is what the
    system says. The system calls a page private while only one process
    happens to have read it, but it can be shared and dropped at any time.
    """
    sums = dict.fromkeys(("private", "mapped", "mapped_share", "all_private"), 0)
    maps = re.split(r"^([0-9a-f]+-.*)\n", Path("/proc/self/smaps").read_text(), flags=re.M)[1:]
    for head, text in zip(maps[::2], maps[1::2], strict=True):
        fields = fields_of(text)
        private = fields["Private_Clean"] + fields["Private_Dirty"]
        sums["all_private"] += private
        if catalogue and str(Path(catalogue).resolve()) in head:
            sums["mapped"] += fields["Rss"]
            sums["mapped_share"] += fields["Pss"]
        else:
            sums["private"] += private
    return sums


def tree(root: int) -> list[int]:
    """Return a process and all that descend from it."""
    below: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        below.setdefault(int(fields[1]), []).append(int(entry.parent.name))
    found = [root]
    for pid in found:
        found += below.get(pid, [])
    return found


def proportional(pids: list[int]) -> int:
    """Return the memory of processes in bytes, a page that n processes share as its n-th part."""
    total = 0
    for pid in pids:
        try:
            total += fields_of(Path(f"/proc/{pid}/smaps_rollup").read_text()).get("Pss", 0)
        except OSError:
            continue
    return total


def usage(root: int) -> dict[str, int]:
    """Return what a process and its children take now.

    Returns:
        `resident` memory of the process, `children`: that of its descendants without the files
        they map, where a page that n of them share counts once, in bytes; and their number of
        `processes`, `threads` and open `files`.
    """
    taken = dict.fromkeys(("resident", "children", "processes", "threads", "files"), 0)
    for pid in tree(root):
        place = Path(f"/proc/{pid}")
        try:
            status = (place / "status").read_text()
            rollup = fields_of((place / "smaps_rollup").read_text()) if pid != root else {}
            files = len(list((place / "fd").iterdir()))
        except OSError:  # it has just ended
            continue
        if pid == root:
            taken["resident"] = fields_of(status).get("VmRSS", 0)
        taken["children"] += rollup.get("Pss_Anon", 0) + rollup.get("Pss_Shmem", 0)
        taken["processes"] += 1
        taken["threads"] += int(re.findall(r"^Threads:\s+(\d+)", status, re.M)[0])
        taken["files"] += files
    return taken
