"""Environments with images behind a server: the local ones, to the last pixel."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from jsonschema import Draft202012Validator
from picture_corridor import ENTRY, PICTURES, PictureCorridor
from server_faults import HURRIED, Api, code
from vector_comparison import MODES, compare, local
from vector_comparison import remote as remote_vector

import agentgyms
from agentgyms import registration, testing
from agentgyms.core import errors
from agentgyms.core.images import encode_png
from agentgyms.core.spaces import UnicodeText
from agentgyms.recording import recorder
from agentgyms.remote import InProcessTransport, RemoteEnv, Reply
from agentgyms.remote.protocol import framing
from env_servers import Server, create_app
from env_servers.http.openapi.document import document_text

DOCUMENT = json.loads(document_text())


@pytest.fixture(autouse=True)
def _of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the environment one of the package's own, so that `gymnasium.make` knows `url`."""
    monkeypatch.setitem(registration.ENVIRONMENTS, PICTURES, ENTRY)
    spec = gym.envs.registration.EnvSpec(
        id=PICTURES,
        entry_point="agentgyms.registration:make_env",
        vector_entry_point="agentgyms.registration:make_vector_env",
        kwargs={"env_id": PICTURES},
        disable_env_checker=True,
    )
    monkeypatch.setitem(gym.registry, PICTURES, spec)


@pytest.fixture
def api() -> Api:
    return Api(create_app(PICTURES))


@pytest.mark.parametrize("kwargs", [{}, {"oracle": True, "max_turns": 7}], ids=["plain", "oracle"])
def test_remote_equals_local(remote, kwargs):
    app = create_app(PICTURES)
    make_local = lambda: gym.make(PICTURES, **kwargs)
    testing.check_remote_parity(make_local, lambda: remote(app, **kwargs))
    with Server(create_app(PICTURES)) as server:
        testing.check_remote_parity(
            make_local, lambda: gym.make(PICTURES, url=server.url, **kwargs)
        )


def test_the_contract_holds_over_a_socket():
    with Server(create_app(PICTURES)) as server:
        make = lambda: gym.make(PICTURES, url=server.url)
        testing.check_env(make)
        testing.check_determinism(make)
        testing.check_snapshot(make)
        testing.check_group(lambda: agentgyms.make_group(PICTURES, 3, url=server.url))
        testing.check_vector(PICTURES, num_envs=2, url=server.url)


@pytest.mark.parametrize("mode", MODES)
def test_the_remote_vector_equals_the_synchronous_one(mode):
    kwargs = {"max_turns": 6, "render_mode": "rgb_array"}
    here, there = local(PICTURES, 3, mode, **kwargs), remote_vector(PICTURES, 3, mode, **kwargs)
    assert sum(compare(here, there, seed, 15) for seed in (7, [5, None, 3], None)) > 10
    for one, two in zip(here.render(), there.render(), strict=True):
        assert np.array_equal(one, two)
    kept, *_ = there.step(["right"] * 3)
    before = kept["image"].copy()
    there.step(["left"] * 3)
    assert np.array_equal(kept["image"], before), "a later step changed what was returned"
    there.close()


def test_snapshots_forks_and_lost_sessions(remote):
    app = create_app(PICTURES)
    here, there = gym.make(PICTURES).unwrapped, remote(app)
    for env in (here, there):
        env.reset(seed=4)
        env.step("right")
    assert here.snapshot() == there.snapshot() == there.fork().snapshot()
    seen, _ = there.restore(here.snapshot())
    seen["image"][:] = 0
    assert here.snapshot() == there.snapshot()
    sessions = app.extensions["agentgyms"].sessions
    sessions.close(next(iter(sessions._open)))
    one, two = here.step("right"), there.step("right")
    assert np.array_equal(one[0]["image"], two[0]["image"])
    assert one[4] == two[4]


def test_images_are_rendered_alike(remote):
    app = create_app(PICTURES)
    for mode in ("rgb_array", "ansi", None):
        here, there = PictureCorridor(render_mode=mode), remote(app, render_mode=mode)
        for env in (here, there):
            assert env.render() is None
            env.reset(seed=4)
            env.step("right")
        one, two = here.render(), there.render()
        assert type(one) is type(two)
        if mode == "rgb_array":
            assert (one.dtype, one.shape) == (two.dtype, two.shape) == (np.uint8, (8, 64, 3))
            assert np.array_equal(one, two)
        else:
            assert one == two
    with pytest.raises(errors.BadOption, match="'human' is unknown: expected None or ansi, rgb_"):
        remote(app, render_mode="human")


def test_what_has_no_wire_form_is_not_rendered(api):
    path = api.begun(render_mode="rgb_array")
    session = next(iter(api.app.extensions["agentgyms"].sessions._open.values()))
    session.env.draw = lambda: np.zeros((2, 2), np.float32)
    assert code(api.get(f"{path}/render")) == (422, "bad_option")


def test_replies_are_as_described(api):
    def check(schema: str, value: Any) -> None:
        found = {"$ref": f"#/components/schemas/{schema}", "components": DOCUMENT["components"]}
        Draft202012Validator(found).validate(value)

    path = api.begun(render_mode="rgb_array")
    check("Turn", api.step(path, "right", 1)[1])
    check("Info", api.get("/v1/info")[1])
    check("SessionState", api.get(path)[1])
    rendered = api.get(f"{path}/render")[1]["render"]
    check("Image", rendered)
    saved = api.post(f"{path}/snapshot", {})[1]
    state = api.post(f"{path}/restore", saved)[1]
    check("State", state)
    assert rendered == state["observation"]["image"]
    operation = DOCUMENT["paths"]["/v1/sessions/{session_id}/render"]["get"]
    schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
    described = Draft202012Validator({**schema, "components": DOCUMENT["components"]})
    for value in (rendered, "text", None):
        described.validate({"render": value})
    assert not described.is_valid({"render": 3})


def test_metrics_and_trajectories_of_sessions_with_images(api):
    path = api.begun(seed=3)
    for turn, action in enumerate(("right", "dance", "right"), 1):
        first = api.step(path, action, turn)
        assert api.step(path, action, turn) == first, "a repeated turn has the stored reply"
    client = api.app.test_client()
    (episode,) = recorder.parse(client.get(f"{path}/trajectory").text.splitlines(), "reply")
    assert recorder.replay(episode) == 4
    figures = client.get("/metrics").text.splitlines()
    assert [line for line in figures if "turns_total" in line and line.endswith(" 3.0")]


def test_batches_of_sessions_with_images(api):
    alone = api.step(api.begun(seed=3), "right", 1)[1]
    created = api.post("/v1/batch/create", {"items": [{}]})[1]["results"]
    item = {"session_id": created[0]["session_id"]}
    api.post("/v1/batch/reset", {"items": [{**item, "seed": 3}]})
    steps = api.post("/v1/batch/step", {"items": [{**item, "action": "right", "turn": 1}]})[1]
    assert steps["results"] == [alone]


@pytest.mark.parametrize(
    "image",
    [3, "text", {}, {"png": 3}, {"png": "x"}, {"png": "QUJD"}, [[1]], {"png": ""}, None],
    ids=str,
)
def test_nonsense_in_place_of_an_image_is_refused_and_spares_the_session(api, image):
    path = api.begun()
    saved = json.loads(api.post(f"{path}/snapshot", {})[1]["snapshot"])
    saved["observation"]["image"] = image
    reply = api.post(f"{path}/restore", {"snapshot": json.dumps(saved)})
    assert code(reply) == (422, "bad_snapshot")
    assert api.step(path, "right", 1)[0] == 200


def test_nonsense_in_other_places(api):
    path = api.begun()
    picture = {"png": base64.b64encode(encode_png(np.zeros((2, 2, 3), np.uint8))).decode()}
    assert code(api.step(path, picture, 1)) == (422, "bad_request")
    assert code(api.post(f"{path}/restore", {"snapshot": picture})) == (422, "bad_request")
    assert code(api.post(f"{path}/restore", {"snapshot": "\x89PNG"})) == (422, "bad_snapshot")


def _huge() -> str:
    png = bytearray(encode_png(np.zeros((2, 2, 3), np.uint8)))
    png[16:24] = b"\0\1\0\0" * 2
    return base64.b64encode(png).decode()


def _flipped(png: str) -> str:
    content = bytearray(base64.b64decode(png))
    content[60] ^= 1
    return base64.b64encode(content).decode()


class Tampering(InProcessTransport):
    """Changes the images in replies."""

    change: Callable[[str], Any] = staticmethod(lambda png: png)

    def send(self, method: str, url: str, **kwargs: Any) -> Reply:
        reply = super().send(method, url, **kwargs)
        value = json.loads(reply.body) if reply.body else {}
        for place, name in ((value.get("observation"), "image"), (value, "render")):
            if isinstance(place, dict) and isinstance(place.get(name), dict):
                place[name]["png"] = self.change(place[name]["png"])
        return reply._replace(body=json.dumps(value).encode() if reply.body else b"")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_flipped, "the PNG is damaged: its part b'IDAT' has another checksum"),
        (lambda png: png[:40], "cut off"),
        (lambda png: png[1:], "not base64"),
        (lambda _: _huge(), "part b'IHDR' has another checksum"),
        (lambda _: None, "not base64"),
    ],
    ids=["flipped", "cut", "not base64", "huge", "null"],
)
def test_a_damaged_image_in_a_reply_is_told(change, message):
    transport = Tampering({"http://server": create_app(PICTURES)})
    env = RemoteEnv(
        PICTURES,
        url="http://server",
        transport=transport,
        patience=HURRIED,
        render_mode="rgb_array",
    )
    env.reset(seed=1)
    transport.change = change
    with pytest.raises(errors.ServerUnavailable, match=message) as caught:
        env.reset(seed=1)
    assert "does not answer as a server of agentgyms does: 'image' is no image" in str(caught.value)
    transport.change = Tampering.change
    env.reset(seed=1)
    transport.change = change
    with pytest.raises(errors.ServerUnavailable, match=message):
        env.step("right")
    with pytest.raises(errors.ServerUnavailable, match="'render' is no image"):
        env.render()


def test_spaces_of_images_travel():
    space = PictureCorridor().observation_space
    written = json.loads(json.dumps(framing.write_space(space)))
    assert written["spaces"]["image"] == {
        "type": "Box",
        "dtype": "uint8",
        "low": 0,
        "high": 255,
        "shape": [8, 64, 3],
    }
    back = framing.read_space(written)
    assert back == space
    assert list(back) == ["text", "image"]
    image = gym.spaces.Box(0, 255, (4, 5, 3), np.uint8)
    for other in (image, gym.spaces.Dict(b=UnicodeText(3), a=image, c=image)):
        assert framing.read_space(framing.write_space(other)) == other
    with pytest.raises(TypeError, match="no wire form"):
        framing.write_space(gym.spaces.Dict(inner=space))


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [8, 64, 4]},
        {"shape": [8, 64]},
        {"shape": [0, 64, 3]},
        {"shape": [-8, -8, 3]},
        {"shape": [8.0, 64, 3]},
        {"shape": [True, 64, 3]},
        {"shape": [10**6, 10**6, 3]},
        {"shape": None},
        {"dtype": "float32"},
        {"high": 1},
        {"low": None},
        {"type": "Discrete"},
    ],
    ids=str,
)
def test_spaces_that_no_client_has(change):
    written = framing.write_space(gym.spaces.Box(0, 255, (8, 64, 3), np.uint8)) | change
    for value in (written, {"type": "Dict", "spaces": {"image": written}}):
        with pytest.raises(errors.BadRequest, match="no space of this client"):
            framing.read_space(value)
    for value in ([], None, {"type": "Dict", "spaces": {}}, {"type": "Dict", "spaces": [1]}):
        with pytest.raises(errors.BadRequest, match="no space of this client"):
            framing.read_space(value)
