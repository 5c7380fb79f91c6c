"""What `/metrics` says: read with the parser of Prometheus' own client."""

import os

import pytest
from prometheus_client.parser import text_string_to_metric_families
from server_faults import CORRIDOR, TOKEN, Api, code

from agentgyms.processes import workers
from agentgyms.processes.child import Child
from env_servers import create_app

EXPECTED = {
    "agentgyms_build_info",
    "agentgyms_draining",
    "agentgyms_episodes",
    "agentgyms_errors",
    "agentgyms_request_seconds",
    "agentgyms_requests",
    "agentgyms_requests_in_flight",
    "agentgyms_requests_waiting",
    "agentgyms_server",
    "agentgyms_sessions",
    "agentgyms_sessions_closed",
    "agentgyms_sessions_limit",
    "agentgyms_sessions_opened",
    "agentgyms_turns",
    "agentgyms_worker_restarts",
    "agentgyms_worker_starts",
    "agentgyms_workers",
    "agentgyms_workers_resident_memory_bytes",
    "process_cpu_seconds",
    "process_max_fds",
    "process_open_fds",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
    "process_virtual_memory_bytes",
}
ECHO = "import sys\nprint('{}', flush=True)\nfor line in sys.stdin: print('{}', flush=True)"


def families(api):
    api.get("/metrics")
    text = api.response.get_data(as_text=True)
    api.response.close()  # which a server does, and a test client does not
    return {family.name: family for family in text_string_to_metric_families(text)}


def value(api, name, **labels):
    """Return the value of a sample, 0 where there is none."""
    found = [
        sample.value
        for family in families(api).values()
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    return sum(found)


def test_every_figure_is_there_and_says_what_it_is():
    api = Api(create_app(CORRIDOR, max_sessions=7))
    found = families(api)
    assert {name for name in found if not name.endswith("_created")} == EXPECTED
    assert all(family.documentation for family in found.values())
    assert value(api, "agentgyms_sessions_limit") == 7
    assert value(api, "agentgyms_server", env_id=CORRIDOR) == 1
    assert value(api, "process_resident_memory_bytes") > 1 << 20
    assert value(api, "agentgyms_requests_in_flight") == 1  # this one


def test_errors_are_counted_by_code_in_batches_as_well():
    api = Api(create_app(CORRIDOR))
    assert code(api.get("/v1/sessions/none"))[1] == "unknown_session"
    items = [{"session_id": "none", "action": "x", "turn": 1}, "junk"]
    api.post("/v1/batch/step", {"items": items})
    assert value(api, "agentgyms_errors_total", code="unknown_session") == 2
    assert value(api, "agentgyms_errors_total", code="bad_request") == 1
    assert value(api, "agentgyms_errors_total") == 3


def test_no_client_adds_labels():
    api = Api(create_app(CORRIDOR, token=TOKEN))
    families(api)

    def number():
        return sum(len(family.samples) for family in families(api).values())

    def visit(i):
        api.call(f"VERB{i}", f"/v1/sessions/{i}")
        api.get(f"/{i}", headers={"Authorization": f"Bearer {i}"})
        api.get(f"/v1/{i}", headers={"Authorization": f"Bearer {TOKEN}"})
        api.get(f"/v1/sessions/{i}", headers={"Authorization": f"Bearer {TOKEN}"})

    visit(0)
    before = number()
    for i in range(1, 9):
        visit(i)
    assert number() == before


def test_draining_shows():
    app = create_app(CORRIDOR)
    api = Api(app)
    assert value(api, "agentgyms_draining") == 0
    app.extensions["agentgyms"].draining = True
    assert value(api, "agentgyms_draining") == 1


@pytest.fixture
def counts():
    """Give a function that tells how the counts of a kind have changed."""
    before = workers.counts()

    def changed(kind):
        now, then = workers.counts()[kind], before.get(kind, workers.Count())
        return (
            now.starts - then.starts,
            now.recycled - then.recycled,
            now.lost - then.lost,
            now.alive - then.alive,
        )

    return changed


def child(kind="test"):
    command = ["python3", "-c", ECHO]
    return Child(command, limit_s=20, environment=os.environ, kind=kind)


def test_workers_are_counted(counts):
    one, two, three = child(), child(), child()
    assert counts("test") == (3, 0, 0, 3)
    api = Api(create_app(CORRIDOR))
    assert value(api, "agentgyms_workers", kind="test") == workers.counts()["test"].alive
    assert value(api, "agentgyms_workers_resident_memory_bytes") > 1 << 20
    one.close()
    two.close("recycled")
    assert counts("test") == (3, 1, 0, 1)
    three._process.kill()
    three._process.wait()
    three.close()
    three.close()
    assert counts("test") == (3, 1, 1, 0), "one that died by itself is lost, and that once"
    recycled = value(api, "agentgyms_worker_restarts_total", kind="test", reason="recycled")
    assert recycled == workers.counts()["test"].recycled


def test_a_fork_of_this_process_has_no_workers():
    one = child()
    woken, waking = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(waking, repr(workers.counts()).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(woken, 100) == b"{}"
    os.close(woken)
    os.close(waking)
    one.close()
