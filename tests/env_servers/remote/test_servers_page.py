"""docs/servers.md says what is so: its tables are whole."""

import re
from pathlib import Path

import yaml
from prometheus_client.parser import text_string_to_metric_families

from agentgyms.remote.protocol.error_codes import CODES
from env_servers import create_app
from env_servers.__main__ import main
from env_servers.http.openapi import document

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/servers.md").read_text()


def section(title):
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_every_option_is_explained():
    options = {flag for p in main.params for flag in p.opts if flag.startswith("--")}
    assert options == set(re.findall(r"`(--[\w-]+)", section("Settings")))


def test_every_error_code_stands_beside_its_status():
    told = {}
    for status, codes in re.findall(r"^\| (\d+) \| (.*) \|$", section("Errors"), re.MULTILINE):
        told |= {name: int(status) for name in re.findall(r"`(\w+)`", codes)}
    assert told == {name: code.status for name, code in CODES.items()}


def test_every_metric_is_explained():
    text = create_app("agentgyms/Corridor-v0", token="").test_client().get("/metrics").text
    names = {family.name for family in text_string_to_metric_families(text)}
    ours = {name for name in names if name.startswith("agentgyms_") and "_created" not in name}
    told = {
        re.sub(r"_(total|info)$", "", name)
        for name in re.findall(r"`(agentgyms_\w+)", section("Metrics"))
    }
    assert told == {name.removesuffix("_info") for name in ours}


def test_every_service_has_its_port_on_the_page():
    services = yaml.safe_load((ROOT / "docker/compose.yaml").read_text())["services"]
    table = section("Start")
    for name, service in services.items():
        served = name.removesuffix("-gate")
        assert f"`{served}`" in table
        for published in service.get("ports", []):
            port = re.search(r":-(\d+)", published)[1]
            assert re.search(rf"`{served}`[^|]*\| {port} ", table), name


def test_the_routes_of_the_page_are_those_of_the_description():
    paths = document.document()["paths"]
    told = section("The protocol")
    for path in paths:
        last = path.rpartition("/")[2]
        assert last.startswith("{") or last in told, path
