"""A Slurm cluster of two nodes on this machine, for tests: its programs run in a folder."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ports import free_port

LIMIT_S = 3000.0

SETTINGS = """
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
MessageTimeout=100
SlurmUser=root
AuthInfo=socket={folder}/munge/socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1
GresTypes=gpu
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={port_1} CPUs=64 Gres=gpu:1
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={port_2} CPUs=64 Gres=gpu:1
PartitionName=all Nodes=ALL Default=YES
"""
"""Of /etc/slurm/slurm.conf; the GPUs are names alone, so that training takes the processors."""


class Cluster:
    """What sbatch and others need to find the cluster.

    Attributes:
        environment: Variables of the environment.
        log: What its programs write.
    """

    def __init__(self, folder: Path) -> None:
        self.environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf")}
        self.log = folder / "log"

    def run(self, *command: str | Path, cwd: Path | None = None) -> str:
        """Return what a program of Slurm prints."""
        done = subprocess.run(
            command, env=self.environment, cwd=cwd, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr + self.log.read_text()[-3000:]
        return done.stdout.strip()

    def is_idle(self) -> bool:
        """Return whether both nodes wait for jobs."""
        shown = subprocess.run(
            ["sinfo", "-h", "-o", "%t %D"], env=self.environment, capture_output=True, check=False
        )
        return shown.stdout == b"idle 2\n"

    def job(self, number: str) -> dict[str, str]:
        """Return what is known of a job; nothing while the controller is too busy to reply."""
        show = ["scontrol", "--oneliner", "show", "job", number]
        done = subprocess.run(
            show, env=self.environment, capture_output=True, text=True, check=False
        )
        return dict(word.split("=", 1) for word in done.stdout.split() if "=" in word)

    def has_ended(self, number: str) -> bool:
        """Return whether a job is over, whatever came of it."""
        return self.job(number).get("JobState") in ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT")


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Start a cluster; its programs end with the context."""
    first = free_port(3)
    ports = {"port": first, "port_1": first + 1, "port_2": first + 2}
    text = SETTINGS.format(host=socket.gethostname(), folder=folder, **ports)
    (folder / "slurm.conf").write_text(text)
    (folder / "gres.conf").write_text("Name=gpu File=/dev/null\n")
    munge = folder / "munge"
    munge.mkdir(mode=0o700)
    (munge / "key").write_bytes(secrets.token_bytes(128))
    (munge / "key").chmod(0o600)
    (folder / "state").mkdir()
    made = Cluster(folder)
    files = {"socket": "socket", "key-file": "key", "seed-file": "seed", "pid-file": "pid"}
    options = [f"--{option}={munge / name}" for option, name in files.items()]
    with ExitStack() as started, made.log.open("w") as log:
        for command in (
            ["munged", "--force", "--foreground", f"--log-file={munge / 'log'}", *options],
            ["slurmctld", "-D"],
            ["slurmd", "-D", "-N", "n1"],
            ["slurmd", "-D", "-N", "n2"],
        ):
            child = subprocess.Popen(command, env=made.environment, stdout=log, stderr=log)
            started.callback(_end, child)
        wait_until(made.is_idle)
        yield made


def wait_until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    give_up = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < give_up, f"not within {LIMIT_S:g} s"
        time.sleep(0.1)


def _end(child: subprocess.Popen[bytes]) -> None:
    child.send_signal(signal.SIGTERM)
    child.wait()
