"""Services of compose.yaml, brought up for tests: images are built here, nothing is left behind."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml
from ports import free_port, is_free

DOCKER = Path(__file__).parents[2] / "docker"
COMPOSE = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]
GATES = [name for name in SERVICES if name.endswith("-gate")]
USUAL = [name for name, service in SERVICES.items() if "profiles" not in service]
"""What `up` starts when nothing is named, gates included."""

GAMES = [name for name, service in SERVICES.items() if "games" in service.get("profiles", ())]

OTHERS = ("appworld-engine", "data")
"""What tests start themselves."""


class Running(NamedTuple):
    """A container of a service that compose has brought up.

    Attributes:
        name: Of the container.
        url: Where it answers; if it stands behind a gate, that of the gate.
        token: What it asks for.
        gate: Name of the gate's container, "" if it has none.
    """

    name: str
    url: str
    token: str
    gate: str = ""

    def there(self) -> dict[str, str]:
        """Return what `gym.make` needs to play there."""
        return {"url": self.url, "token": self.token}


_HEALTHY_S: Final = 300
"""A service that is not healthy by then hangs, however slow the machine is."""
_PROCESSOR_SECONDS: Final = """
import contextlib, os, pathlib
taken = 0
for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
    with contextlib.suppress(OSError):  # it has ended since
        fields = stat.read_text().rpartition(")")[2].split()  # its first is field 3 of proc(5)
        taken += int(fields[11]) + int(fields[12])  # in user and kernel mode
print(taken / os.sysconf("SC_CLK_TCK"))
"""


class Usual(NamedTuple):
    """What `up` has started when it was given no names.

    Attributes:
        project: The project.
        ports: The variables of the file's own ports, empty if one was taken.
        started: The services that ran then, each with its containers.
        cost: Processor seconds that each had taken when all were healthy.
    """

    project: Project
    ports: dict[str, str]
    started: dict[str, list[str]]
    cost: dict[str, float]


class Project:
    """The compose file under a name of its own, with a token, images and volume of its own.

    Args:
        folder: For files of this class.
        settings: Variables of compose.yaml; ports are free ones unless they are in here.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self._tag = f"agentgyms-test-{os.getpid()}-{secrets.token_hex(3)}"
        self._token = secrets.token_urlsafe(32)
        self._images = {
            name: f"{self._tag}-{Path(service['image']).name.partition(':')[0]}"
            for name, service in SERVICES.items()
        }
        # The build uses this machine's network, which may be the only one with a package index.
        changes = {n: {"image": i, "build": {"network": "host"}} for n, i in self._images.items()}
        override = folder / f"{self._tag}.yaml"
        override.write_text(yaml.safe_dump({"services": changes}))
        self._compose = [*_compose_command(), "-p", self._tag]
        self._compose += ["-f", str(DOCKER / "compose.yaml"), "-f", str(override)]
        published = [port_variable(n) for n in SERVICES if "ports" in SERVICES[n]]
        first = free_port(len(published))
        ports = {variable: str(first + i) for i, variable in enumerate(published)}
        self._environment = os.environ | {"AGENTGYMS_TOKEN": self._token} | ports | dict(settings)

    def run(self, *arguments: str) -> str:
        """Return what a command of compose prints."""
        done = subprocess.run(
            [*self._compose, *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=900,
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        return done.stdout.strip()

    def build(self, names: Sequence[str]) -> None:
        """Build the images of services, each once."""
        self.run("build", *{self._images[name]: name for name in names}.values())

    def up(self, names: Sequence[str] = (), *options: str) -> None:
        """Bring services up and wait until they are healthy, gates included.

        No names are those that the file starts of its own accord.
        """
        everything = [*names, *(g for n in names if (g := f"{n}-gate") in SERVICES)] or USUAL
        self.build(everything)
        self.run("up", "-d", *options, *names)
        for name in everything:
            for container in self.started()[name]:
                until(lambda name=container: health(name) == "healthy", _HEALTHY_S)

    def started(self) -> dict[str, list[str]]:
        """Return the services that run, each with its containers."""
        shown = '{{.ID}} {{.Label "com.docker.compose.service"}}'
        own = f"--filter=label=com.docker.compose.project={self._tag}"
        found: dict[str, list[str]] = {}
        for line in docker("ps", "--no-trunc", own, "--format", shown).stdout.splitlines():
            container, service = line.split()
            found.setdefault(service, []).append(container)
        return found

    def running(self, name: str) -> list[Running]:
        """Return what runs of a service."""
        gate = f"{name}-gate" if f"{name}-gate" in SERVICES else ""
        started = self.started()
        gates = started[gate] if gate else []
        return [
            Running(container, _url(*gates or [container]), self._token, "".join(gates))
            for container in started[name]
        ]

    def remove(self) -> None:
        """Take all of it away, whatever of it there is."""
        profiles = sorted({p for s in SERVICES.values() for p in s.get("profiles", ())})
        self.run(*(part for p in profiles for part in ("--profile", p)), "down", "-v", "-t", "3")
        docker("rmi", "-f", *sorted(set(self._images.values())), check=False)


@contextmanager
def project(folder: Path, settings: Mapping[str, str] | None = None) -> Iterator[Project]:
    """Give a project of compose, and take all of it away in the end."""
    if not shutil.which("docker") or docker("info", check=False).returncode:
        pytest.skip("no Docker engine answers")
    made = Project(folder, settings or {})
    try:
        yield made
    finally:
        made.remove()


def docker(
    *arguments: str, check: bool = True, given: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command of the Docker engine, which may read an input."""
    done = subprocess.run(
        ["docker", *arguments], capture_output=True, text=True, timeout=300, input=given
    )
    assert not check or done.returncode == 0, done.stderr[-4000:]
    return done


def inspect(name: str) -> dict[str, Any]:
    """Return what the engine knows of a container."""
    [found] = json.loads(docker("inspect", name).stdout)
    return dict(found)


def health(name: str) -> str:
    """Return the health of a container, such as `healthy`."""
    return str(inspect(name)["State"]["Health"]["Status"])


def processor_seconds(name: str) -> float:
    """Return what the processes that run in a container have taken of processors."""
    return float(inside(name, _PROCESSOR_SECONDS))


def until(condition: Callable[[], bool], limit_s: float) -> None:
    """Wait for something."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.2)


def inside(name: str, program: str) -> str:
    """Return what a Python program prints that runs in a container."""
    return docker("exec", name, "python", "-c", program).stdout


def port_variable(name: str) -> str:
    """Return the variable with the port of a service."""
    [port] = SERVICES[name]["ports"]
    return re.findall(r"\$\{(\w+)", port)[0]


def default_ports(names: Sequence[str]) -> dict[str, str]:
    """Return the variables of services with the ports of the file, empty if one is taken."""
    found = {
        port_variable(name): re.findall(r":-(\d+)\}", *SERVICES[name]["ports"])[0]
        for name in names
        if "ports" in SERVICES[name]
    }
    return found if all(is_free(int(port)) for port in found.values()) else {}


def _url(container: str) -> str:
    [[binding]] = inspect(container)["NetworkSettings"]["Ports"].values()
    return f"http://{binding['HostIp']}:{binding['HostPort']}"


def _compose_command() -> list[str]:
    if docker("compose", "version", check=False).returncode == 0:
        return ["docker", "compose"]
    if shutil.which("docker-compose"):
        return ["docker-compose"]
    pytest.skip("there is no compose")
