"""Client and server speak as an earlier version's did: see `tests/golden/old/make.py`."""

import json
import re

import pytest
from old_files import Recorder, counted_ids, env_id, load_json, play_remotely

from agentgyms.remote import InProcessTransport, Reply
from env_servers import create_app

HEADERS = {"Content-Type": "application/json", "Agentgyms-Protocol": "1"}


@pytest.fixture(scope="module")
def old():
    """Messages, and what their client saw of them."""
    return load_json("wire.json.gz")


class Replayed:
    """A transport that answers each request as an old server did, and wants the same requests."""

    def __init__(self, messages):
        self.messages = iter(messages)

    def send(self, method, url, *, headers, body, timeout_s):
        message = next(self.messages)
        asked = {"method": method, "url": url, "body": body and body.decode()}
        assert asked == message["request"]
        reply = message["reply"]
        return Reply(reply["status"], HEADERS, reply["body"].encode())

    def clone(self):
        return self

    def close(self):
        pass


def test_many_kinds_of_messages_are_kept(old):
    asked = [message["request"] for message in old["messages"]]
    routes = {url.rpartition("/")[2].partition("?")[0] for url in (one["url"] for one in asked)}
    assert routes >= {"info", "sessions", "tasks", "reset", "step", "snapshot", "restore", "fork"}
    assert any("batch" in one["url"] for one in asked)
    assert {one["method"] for one in asked} == {"GET", "POST", "DELETE"}
    assert {message["reply"]["status"] for message in old["messages"]} >= {200, 201, 422}


def test_the_client_asks_and_understands_as_before(old):
    replayed = Replayed(old["messages"])
    with counted_ids():
        seen = play_remotely(replayed)
    assert seen == old["seen"]
    assert next(replayed.messages, None) is None, "fewer requests than before"


def test_the_server_answers_as_before(old):
    server = InProcessTransport({"http://server": create_app(env_id("Corridor"), token="")})
    with counted_ids():
        for message in old["messages"]:
            asked, answered = message["request"], message["reply"]
            reply = server.send(
                asked["method"],
                asked["url"],
                headers=HEADERS,
                body=asked["body"] and asked["body"].encode(),
                timeout_s=(5, 60),
            )
            assert reply.status == answered["status"]
            assert without_version(reply.body.decode()) == without_version(answered["body"])


def test_client_and_server_of_today_agree_with_before(old):
    with counted_ids():
        app = create_app(env_id("Corridor"), token="")
        recorder = Recorder(InProcessTransport({"http://server": app}))
        assert json.loads(said_then(json.dumps(play_remotely(recorder)))) == old["seen"]
    assert len(recorder.messages) == len(old["messages"])


def said_then(text):
    """Return a text without what the corridor's oracle tells since."""
    return re.sub(r', ?\\*"optimal_remaining\\*": ?-?\d+', "", text)


def without_version(body):
    """Return a reply's text without the package's version, and without what is said since."""
    body = said_then(re.sub(r', ?"data_source": ?""', "", body))
    value = json.loads(body) if body else None
    if not isinstance(value, dict) or "agentgyms" not in value:
        return body
    return json.dumps({key: part for key, part in value.items() if key != "agentgyms"})
