"""Writes the files of this folder: run once, with the revision whose files are to stay readable.

    AGENTGYMS_OLD_ROOT=BASE PYTHONPATH=BASE:HERE/tests python make.py FOLDER

`BASE` is a source tree of that revision, and `HERE` the one of this file.
"""

import gzip
import json
import os
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

import gymnasium as gym
from chat_server import ChatServer
from old_files import (
    ENVIRONMENTS,
    OFFICIAL,
    SEED,
    Recorder,
    counted_ids,
    env_id,
    evaluation_words,
    forgetful,
    last_step,
    machine,
    play_remotely,
    proxy,
    run,
    settings,
    webshop_files,
)

import agentgyms
from agentgyms.remote import InProcessTransport
from env_servers import create_app


def pack(path, content):
    """Write bytes compressed; equal ones give equal files."""
    path.write_bytes(gzip.compress(content, 9, mtime=0))


def pack_json(path, value):
    pack(path, json.dumps(value, indent=1, ensure_ascii=False).encode())


def pack_folder(path, folder):
    """Write a folder as an archive of files without times and owners."""

    def plain(member):
        member.mtime, member.uid, member.gid, member.uname, member.gname = 0, 0, 0, "", ""
        return member

    with (
        gzip.GzipFile(path, "wb", 9, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        archive.add(folder, path.name.removesuffix(".tar.gz"), filter=plain)


def recordings(out, work):
    """An episode of each environment, played by its expert."""
    for name, kwargs in ENVIRONMENTS.items():
        file = work / f"{name}.jsonl"
        run("agentgyms", "record", env_id(name), file, *settings(kwargs), "--seed", SEED)
        pack(out / f"recording-{name}.jsonl.gz", file.read_bytes())


def snapshots(out, work):
    """A snapshot of each environment in mid-episode, and what the expert did and saw after it."""
    kept = {}
    for name, kwargs in ENVIRONMENTS.items():
        env = gym.make(env_id(name), **kwargs)
        expert = agentgyms.expert(env)
        env.reset(seed=SEED)
        for _ in range(2):
            env.step(expert())
        taken, rest, over = env.unwrapped.snapshot(), [], False
        while not over:
            action = expert()
            _, reward, terminated, truncated, info = env.step(action)
            over = terminated or truncated
            keys = {key: info[key] for key in ("state_key", "observation_key", "score", "success")}
            rest.append({"action": action, "reward": reward, "over": over, **keys})
        env.close()
        kept[name] = {"snapshot": taken.decode(), "rest": rest}
    pack_json(out / "snapshots.json.gz", kept)


TINY = (
    "run.steps=3",
    "run.threads=1",
    "run.keep_rollouts=1",
    "env.max_turns=8",
    "agent.max_tokens=12",
    "policy.device=cpu",
    "policy.tiny={layers=1, hidden=24, heads=4, feed_forward=32, vocabulary=300, max_length=512}",
    "rollout.tasks_per_step=2",
    "warmstart.episodes=30",
    "warmstart.steps=45",
    "warmstart.batch_size=16",
    "warmstart.learning_rate=1e-2",
    "eval.tasks=2",
    "checkpoint.every=1",
    "checkpoint.keep=9",
    "log.tensorboard=false",
)
"""A policy that wins about half of its episodes."""
RUNS = {
    "gigpo": (),
    "ppo": (
        "method.name=ppo",
        "method.loss={kl_coefficient=0.01}",
        "policy.lora={rank=2, alpha=4.0}",
    ),
}
"""PPO has a critic, a reference policy and here adapters: all that a checkpoint may hold."""


def training_runs(out, work):
    """Runs after two steps of three, and the figures of the third."""
    for name, overrides in RUNS.items():
        changes = [*TINY, *overrides, f"run.name={name}"]
        run("harness", "train", "corridor-tiny", *(w for c in changes for w in ("--set", c)))
        folder = work / "runs" / name
        expected = last_step(folder)
        rewind(folder)
        kept = folder.rename(work / f"run-{name}")
        shutil.copytree(kept, work / "resumed", symlinks=True)
        run("harness", "train", "--resume", work / "resumed")
        assert last_step(work / "resumed") == expected, "resuming is not exact in this revision"
        shutil.rmtree(work / "resumed")
        about = {"machine": machine(), "records": expected}
        pack_json(out / f"run-{name}-step-3.json.gz", about)
        for reward in ("environment", "success"):
            told = run("harness", "credit", kept, "--reward", reward, "--json", "-")
            pack(out / f"credit-{name}-{reward}.json.gz", told.encode())
        pack_folder(out / f"run-{name}.tar.gz", kept)


def rewind(folder):
    """Leave a run as it was after two steps."""
    later = {*folder.glob("checkpoints/step-*[!2]"), *folder.glob("*/step-000003*")}
    for path in later | {*folder.glob("*.png")}:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    (folder / "checkpoints/best").unlink(missing_ok=True)
    lines = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    kept = [line for line in lines if json.loads(line)["step"] < 3]
    (folder / "metrics.jsonl").write_text("".join(kept))


def evaluations(out, work):
    """Evaluations with a scripted model, the answers kept, and what is reported of both."""
    with ChatServer(forgetful) as server:
        os.environ |= proxy(server)
        for agent in ("react", "reflexion"):
            run("harness", *evaluation_words(agent))
    kept = []
    for agent in ("react", "reflexion"):
        kept.append((work / "evaluations" / agent).rename(work / f"evaluation-{agent}"))
        (kept[-1] / "page.html").unlink()
        pack_folder(out / f"evaluation-{agent}.tar.gz", kept[-1])
    for form in ("csv", "latex", "markdown"):
        told = run("harness", "report", *kept, "--format", form)
        pack(out / f"report.{form}.gz", told.encode())
    pack(out / "answers.sqlite.gz", (work / "answers.sqlite").read_bytes())


def data_sets(out, work):
    """Data sets as they were taken in, and an episode of each."""
    os.environ["AGENTGYMS_DATA"] = str(work / "data")
    official = webshop_files(work / "official")
    run("agentgyms", "data", "import", "webshop", official)
    run("agentgyms", "data", "export", work / "games", "--split", "valid_seen")
    games = sorted((work / "games").rglob("game.tw-pddl"))
    for game in games[2:]:
        shutil.rmtree(game.parent)
    run("agentgyms", "data", "import", "alfworld", work / "games", "--allow-other")
    for name, kwargs in OFFICIAL.items():
        file = work / f"official-{name}.jsonl"
        run("agentgyms", "record", env_id(name), file, *settings(kwargs), "--seed", SEED)
        pack(out / f"official-{name}.jsonl.gz", file.read_bytes())
    pack_folder(out / "data.tar.gz", work / "data")


def wire(out, work):
    """What a client and a server say to each other while the corridor is played."""
    with counted_ids():
        app = create_app(env_id("Corridor"), token="")
        recorder = Recorder(InProcessTransport({"http://server": app}))
        seen = play_remotely(recorder)
    pack_json(out / "wire.json.gz", {"messages": recorder.messages, "seen": seen})


def main():
    os.environ["TQDM_DISABLE"] = "1"
    out = Path(sys.argv[1]).resolve()
    out.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.gettempdir(), "agentgyms-old")  # adapters' files tell where they were made
    work.mkdir()
    os.chdir(work)
    try:
        for write in (wire, recordings, snapshots, data_sets, evaluations, training_runs):
            write(out, work)
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
