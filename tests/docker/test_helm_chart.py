"""The Helm chart: what Helm itself makes of it is valid, and as confined as compose.yaml."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from dockerfiles import DOCKER, PROJECT

CHART = DOCKER / "helm" / "agentgyms"
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
COMPOSE = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]
NAMES = list(VALUES["environments"])


def of_service(name: str) -> dict[str, Any]:
    """Return a service of compose.yaml with the defaults of its variables."""
    text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", json.dumps(SERVICES[name]))
    return json.loads(text)


def rendered(*values: dict[str, Any]) -> list[dict[str, Any]]:
    done = subprocess.run(
        [os.environ["AGENTGYMS_DEPLOY_PYTHON"], Path(__file__).with_name("render_chart.py"), CHART],
        input=json.dumps(values),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def valid(*values: dict[str, Any]) -> list[dict[tuple[str, str], dict[str, Any]]]:
    """Return the objects for each of `values`, by kind and name; Helm has nothing against any."""
    results = rendered(*values)
    assert [one["error"] for one in results] == [""] * len(values)
    return [{(m["kind"], m["metadata"]["name"]): m for m in one["manifests"]} for one in results]


def pod(objects: dict[tuple[str, str], dict[str, Any]], name: str) -> dict[str, Any]:
    return objects["StatefulSet", f"gyms-{name}"]["spec"]["template"]["spec"]


def test_the_chart_has_what_compose_starts():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == PROJECT["version"]
    others = {"data", "webshop-site", *(name for name in SERVICES if name.endswith("-gate"))}
    assert set(NAMES) == set(SERVICES) - others
    usual = {name for name, service in SERVICES.items() if "profiles" not in service}
    assert set(VALUES["serve"]) == usual - others


def test_every_setting_has_a_schema():
    """The schema refuses what it does not know, so it knows all that values.yaml has."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert set(VALUES) == set(schema["properties"]) - {"global"}
    assert set(VALUES["data"]) == set(schema["properties"]["data"]["properties"])
    own = schema["definitions"]["environment"]["properties"]
    assert set(VALUES["defaults"]) == set(own) - {"id"}
    for part in ("image", "autoscaling"):
        assert set(VALUES["defaults"][part]) == set(own[part]["properties"])


@pytest.fixture(scope="module")
def all_served():
    [objects] = valid({"serve": NAMES})
    return objects


@pytest.mark.deploy
@pytest.mark.parametrize("name", NAMES)
def test_a_server_is_that_of_compose(all_served, name):
    service, spec = of_service(name), pod(all_served, name)
    [server] = spec["containers"]
    env_id, *options = service["command"]
    left_out = {"--insecure"} | {one for one in options if one.endswith("=null")}
    assert server["args"][0] == env_id
    assert set(server["args"][1:]) == set(options) - left_out
    assert server["image"] == service["image"]
    assert server.get("command", []) == service.get("entrypoint", [])
    assert server["resources"]["limits"] == {
        "memory": service["mem_limit"].replace("g", "Gi"),
        "cpu": service["cpus"],
    }
    size = re.search(r"size=(\d+)([mg])", service["tmpfs"][0])
    [tmp] = spec["volumes"]
    assert tmp["emptyDir"] == {"medium": "Memory", "sizeLimit": f"{size[1]}{size[2].upper()}i"}
    assert spec["terminationGracePeriodSeconds"] == int(service["stop_grace_period"].rstrip("s"))
    started = server["startupProbe"]
    late = int(service["healthcheck"]["start_period"].rstrip("s"))
    assert started["periodSeconds"] * started["failureThreshold"] >= late
    assert started["httpGet"] == server["livenessProbe"]["httpGet"]
    assert server["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "http"}
    assert server["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}
    assert server["ports"] == [{"name": "http", "containerPort": 8000}]


@pytest.mark.deploy
def test_pods_have_no_rights_and_their_token_is_a_secret():
    [objects] = valid({"serve": NAMES, "data": {"create": True, "fetch": ["alfworld"]}})
    kinds = {kind for kind, _ in objects}
    assert kinds == {"StatefulSet", "Service", "NetworkPolicy", "PersistentVolumeClaim", "Job"}
    pods = [
        one["spec"]["template"]["spec"] for one in objects.values() if "template" in one["spec"]
    ]
    assert len(pods) == len(NAMES) + 1
    for spec in pods:
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] == 10001
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert spec["automountServiceAccountToken"] is False
        assert not {"hostNetwork", "hostPID", "hostIPC", "initContainers"} & set(spec)
        [container] = spec["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        serves = container["name"] == "server"
        data = next(one for one in container["volumeMounts"] if one["name"] == "data")
        assert data.get("readOnly", False) is serves
        secret = {"secretKeyRef": {"name": "agentgyms-token", "key": "token"}}
        token = [{"name": "AGENTGYMS_TOKEN", "valueFrom": secret}]
        assert container.get("env", []) == (token if serves else [])


@pytest.mark.deploy
def test_agents_code_has_no_way_out(all_served):
    gated = {name for name in NAMES if f"{name}-gate" in SERVICES}
    for name in NAMES:
        policy = all_served["NetworkPolicy", f"gyms-{name}"]["spec"]
        labels = all_served["StatefulSet", f"gyms-{name}"]["spec"]["template"]["metadata"]["labels"]
        assert policy["podSelector"]["matchLabels"].items() <= labels.items()
        assert policy["ingress"] == [{"ports": [{"port": "http", "protocol": "TCP"}]}]
        spec = pod(all_served, name)
        if name in gated:
            assert policy["policyTypes"] == ["Ingress", "Egress"]
            assert policy["egress"] == []
            assert spec["dnsPolicy"] == "None"
            assert spec["dnsConfig"] == {"nameservers": SERVICES[name]["dns"]}
        else:
            assert policy["policyTypes"] == ["Ingress"]
            assert not {"dnsPolicy", "dnsConfig"} & set(spec)


@pytest.mark.deploy
def test_replicas_have_names_of_their_own():
    few = {"serve": ["alfworld", "sokoban"], "defaults": {"replicas": 3}}
    few["environments"] = {"sokoban": {"replicas": 0}}
    [objects] = valid(few)
    service = objects["Service", "gyms-alfworld"]["spec"]
    servers = objects["StatefulSet", "gyms-alfworld"]["spec"]
    assert service["clusterIP"] == "None"
    assert service["selector"] == servers["selector"]["matchLabels"]
    assert servers["serviceName"] == "gyms-alfworld"
    assert servers["replicas"] == 3
    assert objects["StatefulSet", "gyms-sokoban"]["spec"]["replicas"] == 0
    [one] = rendered(few)
    urls = [f"http://gyms-alfworld-{i}.gyms-alfworld.lab:8000" for i in range(3)]
    assert f"alfworld: {','.join(urls)}\n" in one["notes"]


@pytest.mark.deploy
def test_replicas_follow_processors_and_sessions():
    autoscaling = {"enabled": True, "maxReplicas": 6, "sessions": 200}
    own = {"alfworld": {"ttl": 900}, "webshop": {"autoscaling": {"enabled": False}}}
    values = {
        "serve": ["alfworld", "webshop"],
        "defaults": {"autoscaling": autoscaling},
        "environments": own,
    }
    [objects] = valid(values)
    assert ("HorizontalPodAutoscaler", "gyms-webshop") not in objects
    assert "replicas" not in objects["StatefulSet", "gyms-alfworld"]["spec"]
    scaler = objects["HorizontalPodAutoscaler", "gyms-alfworld"]["spec"]
    target = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "gyms-alfworld"}
    assert scaler["scaleTargetRef"] == target
    assert (scaler["minReplicas"], scaler["maxReplicas"]) == (1, 6)
    cpu, sessions = scaler["metrics"]
    assert cpu["resource"]["target"] == {"type": "Utilization", "averageUtilization": 70}
    assert sessions["pods"]["metric"] == {"name": "agentgyms_sessions"}
    assert sessions["pods"]["target"] == {"type": "AverageValue", "averageValue": "200"}
    assert scaler["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 900


@pytest.mark.deploy
def test_data_clients_and_an_environment_of_ones_own():
    mine = {"id": "my/Env-v0", "image": {"repository": "r/mine", "tag": "7"}, "set": {"n": 3}}
    mine["env"] = [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "k"}}}]
    peers = [{"podSelector": {"matchLabels": {"app": "trainer"}}}]
    data = {"claim": "sets", "fetch": ["alfworld", "webshop"]}
    values = {"serve": ["mine"], "environments": {"mine": mine}, "clients": peers, "data": data}
    [objects] = valid(values)
    spec = pod(objects, "mine")
    [server] = spec["containers"]
    assert server["image"] == "r/mine:7"
    assert server["args"][:2] == ["my/Env-v0", "--set=n=3"]
    assert [one["name"] for one in server["env"]] == ["AGENTGYMS_TOKEN", "KEY"]
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "sets", "readOnly": True}}
    assert claim in spec["volumes"]
    [ingress] = objects["NetworkPolicy", "gyms-mine"]["spec"]["ingress"]
    assert ingress["from"] == peers
    jobs = [one["spec"]["template"]["spec"] for (kind, _), one in objects.items() if kind == "Job"]
    commands = [job["containers"][0]["command"] for job in jobs]
    assert commands == [["agentgyms", "data", "fetch", name] for name in data["fetch"]]
    assert not [name for kind, name in objects if kind == "PersistentVolumeClaim"]


WRONG = {
    "serve: .nope. is not among environments, which has alfworld, ": {"serve": ["nope"]},
    "missing property 'id'": {"environments": {"mine": {"set": {}}}},
    "additional properties 'replica' not allowed": {"defaults": {"replica": 2}},
    "got string, want integer": {"defaults": {"replicas": "2"}},
    "data.fetch needs a volume": {"data": {"fetch": ["alfworld"]}},
    "environments.alfworld.autoscaling: give cpuPercent or sessions": {
        "defaults": {"autoscaling": {"enabled": True, "cpuPercent": 0}}
    },
    "take a shorter name for the release": {
        "serve": ["a" * 60],
        "environments": {"a" * 60: {"id": "my/Env-v0"}},
    },
}


@pytest.mark.deploy
def test_wrong_values_are_refused():
    for (message, _), one in zip(WRONG.items(), rendered(*WRONG.values()), strict=True):
        assert re.search(message, one["error"]), one["error"]
