"""vLLM on the CPU for tests: a tiny model, a server that has it, and the settings of both."""

import os
import signal
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import requests
from ports import free_port

from harness import prompts
from harness.config import TinyConfig
from harness.model import tiny
from harness.model.policy import Policy

NAME = "tiny-qwen2"
ENGINE = {"dtype": "float32", "enforce_eager": True}
READY_S = 300.0

# One thread: its numbers then do not depend on how many cores a machine has.
SETTINGS = {"VLLM_CPU_KVCACHE_SPACE": "1", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


@dataclass(frozen=True)
class Server:
    """A server of models: its address, the model's name there and the model's folder."""

    url: str
    name: str
    folder: Path


def make_folder(folder):
    """Write a tiny random Qwen2 and return its folder.

    Heads have a width of 32, the smallest that vLLM's attention on the CPU takes.
    """
    templates = Path(prompts.__file__).parent / "templates"
    corpus = [file.read_text(encoding="utf-8") for file in sorted(templates.rglob("*.*"))]
    tokenizer = tiny.make_tokenizer(corpus, 1024)
    size = TinyConfig(layers=2, hidden=128, heads=4, feed_forward=128, max_length=8192)
    Policy(tiny.make_model(size, tokenizer, seed=1), tokenizer, "cpu").save(folder)
    return folder


def python():
    """Return the Python that has vLLM."""
    return os.environ["AGENTGYMS_VLLM_PYTHON"]


def environment():
    """Return the environment variables of a vLLM on the CPU that can import this repository."""
    here = Path(__file__).parent
    paths = [str(here.parent.parent), str(here)]
    return {**os.environ, **SETTINGS, "VLLM_NO_USAGE_STATS": "1", "PYTHONPATH": ":".join(paths)}


@contextmanager
def serving(folder, home):
    """Run a server of the model in a folder; its output goes to a file in `home`."""
    port = free_port()
    child = _begin(folder, home / "server.log", port)
    try:
        _wait_until_ready(child, f"http://127.0.0.1:{port}", home / "server.log")
        yield Server(f"http://127.0.0.1:{port}/v1", NAME, folder)
    finally:
        _end(child)


class TrainingServer:
    """A server that training gives weights to; it can be killed and started again."""

    def __init__(self, folder, home):
        self.port, self._folder = free_port(), folder
        self.url, self._log = f"http://127.0.0.1:{self.port}", home / f"server-{self.port}.log"
        self.start()

    def start(self):
        more = ["--enable-scale-out", "--logprobs-mode", "processed_logprobs"]
        self._child = _begin(self._folder, self._log, self.port, *more, VLLM_SERVER_DEV_MODE="1")

    def wait(self):
        _wait_until_ready(self._child, self.url, self._log)

    def kill(self):
        os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()

    def end(self):
        if self._child.poll() is None:
            self.kill()


def _begin(folder, log, port, *more, **variables):
    words = [python(), "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder)]
    words += ["--served-model-name", NAME, "--host", "127.0.0.1", "--port", str(port)]
    words += ["--dtype", ENGINE["dtype"], "--enforce-eager", "--gpu-memory-utilization", "0.2"]
    # On the CPU, requests with a seed end vLLM 0.32 when their prompts are read in pieces.
    words += ["--no-enable-chunked-prefill", *more]
    with log.open("a", encoding="utf-8") as stream:
        return subprocess.Popen(
            words,
            stdout=stream,
            stderr=stream,
            env=environment() | variables,
            start_new_session=True,
        )


def _wait_until_ready(child, url, log):
    give_up = time.monotonic() + READY_S
    while time.monotonic() < give_up and child.poll() is None:
        try:
            if requests.get(f"{url}/health", timeout=60).ok:
                return
        except requests.RequestException:
            time.sleep(0.5)
    raise RuntimeError(f"vLLM's server did not start:\n{log.read_text(encoding='utf-8')[-4000:]}")


def _end(child):
    """End the server with the engine that it started."""
    os.killpg(child.pid, signal.SIGTERM)
    try:
        child.wait(30)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
