"""OpenEnv's own validation of a package, up to its level `runtime`, network policy included.

Run as a script in a Python with OpenEnv; standard input is the package's folder as JSON. The
subject is the command of the package's Dockerfile, in a network namespace without a way out, as
Docker's `--network none` makes one; a sink in another namespace must be out of its reach. Standard
output is the report.
"""

import hashlib
import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from openenv.validation import Level, run_validation
from openenv.validation.providers._netns import PROBE_SCRIPT, SINK_SCRIPT
from openenv.validation.types import ProviderCapability

SINK = "10.99.0.1"
URL = "http://127.0.0.1:8000"


class Subject:
    """The package's server, a process of this namespace."""

    base_url = URL

    def __init__(self, root, spec, sink):
        self._spec, self._sink = spec, sink
        (line,) = [x for x in (root / "Dockerfile").read_text().splitlines() if x[:4] == "CMD "]
        program, *words = json.loads(line[4:])
        command = [Path(sys.executable).with_name(program), *words]
        self._process = subprocess.Popen(
            command, cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        while not self._answers():
            assert self._process.poll() is None, self._process.stderr.read()
            time.sleep(0.1)

    def _answers(self):
        try:
            with urllib.request.urlopen(f"{URL}/health") as reply:
                return reply.status == 200
        except OSError:
            return False

    def inspect(self):
        return {"provider": "process"}

    def measure_network(self):
        """Probe the sink from its own namespace and from this one."""
        probe = [sys.executable, "-c", PROBE_SCRIPT, SINK, "60"]
        inside = [f"--net=/proc/{self._sink}/ns/net", *probe]
        control = json.loads(subprocess.check_output(["nsenter", *inside]))["probes"]
        measured = json.loads(subprocess.check_output(probe[:-1]))
        return {
            "requested_mode": self._spec.network.mode,
            "subject_network_mode": "none",
            "namespace": measured["namespace"],
            "probes": [
                {"kind": kind, "control": control[kind], "subject": measured["probes"][kind]}
                for kind in control
            ],
        }

    def stop(self):
        self._process.terminate()
        _, self.said = self._process.communicate()
        assert "Traceback" not in self.said, self.said


class Processes:
    """A provider of OpenEnv's validation that needs no Docker."""

    name = "process"
    capabilities = frozenset({ProviderCapability.IMAGE_BUILD, ProviderCapability.NETWORK_POLICY})
    supported_network_modes = frozenset({"no-network"})

    def __init__(self, sink):
        self._sink = sink

    def build(self, root, execution):
        self._root = root
        return f"sha256:{hashlib.sha256((root / execution.dockerfile).read_bytes()).hexdigest()}"

    def start(self, spec):
        return Subject(self._root, spec, self._sink)


def validate(folder, sink):
    """Validate a package with the server in this namespace."""
    report = run_validation(Path(folder), max_level=Level.RUNTIME, provider=Processes(sink))
    sys.stdout.write(report.model_dump_json())


def main(folder):
    """Make the two namespaces, and validate in one of them."""
    up = "ip link set lo up"
    begins = f'{up} && ip address add {SINK}/32 dev lo && exec "$@"'
    sink = subprocess.Popen(
        ["unshare", "-n", "sh", "-c", begins, "-", sys.executable, "-c", SINK_SCRIPT]
    )
    try:
        again = [sys.executable, __file__, folder, str(sink.pid)]
        inner = f'mount -t sysfs sysfs /sys && {up} && exec "$@"'  # /sys lists the interfaces
        subprocess.run(["unshare", "-n", "-m", "sh", "-c", inner, "-", *again], check=True)
    finally:
        sink.kill()
        sink.wait()


if __name__ == "__main__":
    if sys.argv[1:]:
        validate(*sys.argv[1:])
    else:
        main(json.load(sys.stdin))
