"""What the files in `tests/golden/old` were written with: the maker and the tests share it.

Only public names are used here, so that old and new revisions of the packages both run it.
"""

import gzip
import importlib
import itertools
import json
import os
import platform
import re
import secrets
import tarfile
import tomllib
from contextlib import contextmanager
from pathlib import Path

import torch
from click.testing import CliRunner

OLD = Path(__file__).parent / "golden/old"
ENVIRONMENTS = {
    "ALFWorld": {},
    "AppWorld": {},
    "Corridor": {"split": "valid_seen"},
    "SOTOPIA": {},
    "SearchQA": {},
    "Sokoban": {"rooms": 60},
    "VisualSokoban": {"rooms": 60, "cell_pixels": 16},
    "WebShop": {},
}
"""Arguments of each environment whose recordings and snapshots are kept."""
OFFICIAL = {
    "ALFWorld": {"source": "official", "split": "valid_seen"},
    "WebShop": {"source": "official", "split": "test"},
}
"""Arguments of the environments that read data sets."""
SEED = 3
MODELS_URL = "http://models.invalid/v1"


def env_id(name):
    """Return the registered id."""
    return f"agentgyms/{name}-v0"


def settings(kwargs):
    """Return arguments of an environment as options of the command line."""
    pairs = [f"{key}={json.dumps(value)}" for key, value in kwargs.items()]
    return [word for pair in pairs for word in ("--set", pair)]


def program(name):
    """Return the command of `[project.scripts]`.

    `AGENTGYMS_OLD_ROOT` names another source tree: the maker's.
    """
    root = Path(os.environ.get("AGENTGYMS_OLD_ROOT", Path(__file__).parents[1]))
    scripts = tomllib.loads((root / "pyproject.toml").read_text())["project"]["scripts"]
    return importlib.import_module(scripts[name].partition(":")[0]).main


def run(name, *arguments):
    """Run a program in this process and return its standard output."""
    words = list(map(str, arguments))
    result = CliRunner().invoke(program(name), words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def unpack(name, folder):
    """Return the file or folder of a kept `name`, unpacked in a new place."""
    kept = OLD / name
    if kept.name.endswith(".tar.gz"):
        with tarfile.open(kept) as archive:
            archive.extractall(folder, filter="data")
        return folder / kept.name.removesuffix(".tar.gz")
    target = folder / kept.name.removesuffix(".gz")
    target.write_bytes(gzip.decompress(kept.read_bytes()))
    return target


def load_json(name):
    """Return the JSON value of a kept file."""
    return json.loads(gzip.decompress((OLD / name).read_bytes()))


def machine():
    """Return what rounding depends on."""
    return [torch.__version__, platform.machine(), torch.backends.cpu.get_cpu_capability()]


def last_step(folder):
    """Return a run's figures of step 3 but those of the clock and the machine."""
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    own = ("time/", "memory/", "cost/")
    return [
        {key: value for key, value in line.items() if not key.startswith(own)}
        for line in lines
        if line["step"] == 3
    ]


# --- evaluations --------------------------------------------------------------------------------


def evaluation_words(agent):
    """Return the words of `harness` that evaluate, in the current folder."""
    return (
        *("eval", "--env", "Corridor", "--agent", agent, "--seeds", "0,1", "--tasks", 3),
        *("--model", "scripted", "--url", MODELS_URL, "--name", agent),
        *("--set", "service.cache_path=answers.sqlite"),
    )


def proxy(server):
    """Return the environment variables by which requests to `MODELS_URL` reach a server here.

    Answers are kept by the address, so it has to be the same one wherever a test runs.
    """
    here = server.url.removesuffix("/v1")
    return {"HTTP_PROXY": here, "http_proxy": here, "NO_PROXY": "", "no_proxy": ""}


def forgetful(messages):
    """Play the corridor without keys, and try doors that are not there."""
    works = re.findall(r"^- (.*)$", messages[-1]["content"], re.MULTILINE)
    tries = "open door" in works or sum(map(ord, messages[-1]["content"])) % 4 == 0
    action = "open door" if tries else "right"
    return f"<think>What now?</think><action>{action}</action>"


# --- data sets ----------------------------------------------------------------------------------


def webshop_files(folder):
    """Write 50 invented products in the form of WebShop's official files; return the folder."""
    products = [
        {
            "asin": f"B0TEST{number:04}",
            "name": f"{material} Lamp No. {number}",
            "full_description": "Größer, ½ price & <cheap>",
            "small_description": ["Warm light", "Solid"],
            "pricing": f"${number + 5}.99",
            "images": [],
            "category": "garden",
            "query": "desk lamps",
            "product_category": "Home › Lamps",
            "customization_options": {"Color": [{"value": "black"}, {"value": "漆黒"}]},
            "average_rating": 4.5,
        }
        for number, material in enumerate(("Walnut", "Oak") * 25)
    ]
    about = {
        product["asin"]: {
            "attributes": ["dimmable", "solid wood"],
            "instruction": "Find me dimmable desk lamps",
            "instruction_attributes": ["dimmable"],
        }
        for product in products
    }
    folder.mkdir()
    (folder / "items_shuffle_1000.json").write_text(json.dumps(products, ensure_ascii=False))
    (folder / "items_ins_v2_1000.json").write_text(json.dumps(about))
    return folder


# --- messages between client and server ---------------------------------------------------------


@contextmanager
def counted_ids():
    """Number what is otherwise random: ids of sessions and of requests."""
    counters = {name: itertools.count(1) for name in ("token_hex", "token_urlsafe")}
    before = {name: getattr(secrets, name) for name in (*counters, "randbelow")}
    secrets.token_hex = lambda size=16: f"{next(counters['token_hex']):032x}"
    secrets.token_urlsafe = lambda size=16: f"session-{next(counters['token_urlsafe'])}"
    secrets.randbelow = lambda _: 0
    try:
        yield
    finally:
        for name, function in before.items():
            setattr(secrets, name, function)


class Recorder:
    """A transport that notes each request and its reply.

    Args:
        inner: Carries the requests.
    """

    def __init__(self, inner):
        self.inner, self.messages = inner, []

    def send(self, method, url, *, headers, body, timeout_s):
        reply = self.inner.send(method, url, headers=headers, body=body, timeout_s=timeout_s)
        asked = {"method": method, "url": url, "body": body and body.decode()}
        answered = {"status": reply.status, "body": reply.body.decode()}
        self.messages.append({"request": asked, "reply": answered})
        return reply

    def clone(self):
        return self

    def close(self):
        pass


def play_remotely(transport):
    """Play the corridor on a server in every way that there is; return what was seen."""
    from agentgyms.remote import RemoteEnv, RemoteVectorEnv

    seen = []
    corridor = {"url": "http://server", "token": "", "transport": transport}
    env = RemoteEnv(env_id("Corridor"), **corridor, split="valid_seen", oracle=True)
    seen.append([env.data_version, env.max_turns, sorted(env.tasks)])
    seen.append(env.reset(seed=SEED, options={"task_id": sorted(env.tasks)[1]}))
    seen.append(env.step("no such action"))
    snapshot = env.snapshot()
    seen.append(snapshot.decode())
    fork = env.fork()
    seen.append(fork.step("right"))
    fork.close()
    over = False
    while not over:
        seen.append(env.step(env.expert_actions()["best"]))
        over = seen[-1][2] or seen[-1][3]
    seen.append(env.restore(snapshot))
    try:
        env.reset(seed=0, options={"task_id": "none"})
    except ValueError as e:
        seen.append([type(e).__name__, str(e)])
    env.close()
    vector = RemoteVectorEnv(env_id("Corridor"), 2, **corridor)
    seen.append([list(part) for part in vector.reset(seed=SEED)[:1]])
    for action in ("right", "left"):
        observations, reward, *_ = vector.step([action, action])
        seen.append([list(observations), reward.tolist()])
    vector.close()
    return json.loads(json.dumps(seen))
