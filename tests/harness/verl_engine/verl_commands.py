"""Commands that train in real verl on the CPU; a server of answers stands in for vLLM."""

import os
import secrets
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PYTHON = os.environ.get("AGENTGYMS_VERL_PYTHON", "")
HARNESS = [PYTHON, "-m", "harness"]
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": f"{ROOT}{os.pathsep}{HERE}",
    "VERL_PLATFORM": "cpu",
    "VERL_USE_EXTERNAL_MODULES": "cpu_verl,harness.training.verl.plugin",
    "OMP_NUM_THREADS": "1",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
    "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES": "1",
    "WANDB_MODE": "disabled",
}
ON_CPU = {
    "trainer.device": "cpu",
    "trainer.logger": '["console"]',
    "reward.num_workers": 1,
    "actor_rollout_ref.rollout.name": "cpu_hf",
    "actor_rollout_ref.rollout.free_cache_engine": "false",
    "actor_rollout_ref.rollout.load_format": "auto",
    "actor_rollout_ref.rollout.agent.num_workers": 1,
    "actor_rollout_ref.actor.use_torch_compile": "false",
    "actor_rollout_ref.model.use_remove_padding": "false",
    "actor_rollout_ref.model.override_config.attn_implementation": "sdpa",
    "transfer_queue.backend.SimpleStorage.num_data_storage_units": 1,
}

ALONE = {"address": "local", "num_cpus": 32, "include_dashboard": "false"}


def command(folder, name, *overrides, workers=1, address=None, **of_verl):
    """Return the command that trains the corridor from a weak warm start.

    Args:
        folder: The run's folder.
        name: The run's name.
        *overrides: Settings that differ from the recipe's.
        workers: The number of processes that learn.
        address: A Ray cluster's address; None starts one.
        **of_verl: Settings of verl.
    """
    own = ["warmstart.steps=8", "warmstart.episodes=20", "eval.every=0", *overrides]
    own += ["policy.precision=float32"]
    own = [f"run.output='{folder}'", f"run.name={name}", *own]
    many = {"trainer.n_gpus_per_node": workers}
    if address is None:
        many |= {f"ray_kwargs.ray_init.{key}": value for key, value in ALONE.items()}
        many["ray_kwargs.ray_init.num_gpus"] = workers
    else:
        many["ray_kwargs.ray_init.address"] = address
    words = [word for one in own for word in ("--set", one)]
    for key, value in {**ON_CPU, **many, **of_verl}.items():
        words += ["--verl", f"{key}={value}"]
    return [*HARNESS, "train", "corridor-tiny", "--engine", "verl", *words]


def run(words):
    done = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return done.stdout


def peer(*words):
    return run([PYTHON, str(HERE / "verl_peer.py"), *map(str, words)])


class Training:
    """A command that trains in a folder, and what it says."""

    def __init__(self, folder, words):
        self.folder = folder
        self._log = folder.with_name(f"output-{len(list(folder.parent.iterdir()))}")
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                words, env=ENVIRONMENT, stdout=log, stderr=subprocess.STDOUT
            )

    def resume(self):
        assert self.process.poll() is not None
        return Training(self.folder, [*HARNESS, "train", "--resume", str(self.folder)])

    @property
    def saved(self):
        """The last step that verl has saved."""
        file = self.folder / "verl" / "latest_checkpointed_iteration.txt"
        return int(file.read_text() or 0) if file.exists() else 0

    def reach(self, step):
        while self.process.poll() is None and self.saved < step:
            time.sleep(0.1)
        assert self.process.poll() is None, self.told[-6000:]

    def error(self):
        """Return the last line that it says; it cannot go on."""
        assert self.process.wait() == 2, self.told[-6000:]
        return self.told.splitlines()[-1]

    @property
    def told(self):
        return self._log.read_text()
