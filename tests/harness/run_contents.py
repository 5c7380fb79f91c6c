"""What a training run leaves in its folder."""

import gzip
import json

import torch

from harness.runs import checkpoints, metrics


def left(folder):
    """Everything a run has come to that does not tell the time."""
    files = [*folder.glob("evaluations/*"), *folder.glob("rollouts/*"), folder / "table.md"]
    told = {path.relative_to(folder): path.read_bytes() for path in files}
    told["metrics"] = [metrics.repeatable(record) for record in metrics.read(folder)]
    for checkpoint in checkpoints.find_all(folder):
        state = torch.load(checkpoint.folder / "trainer.pt", weights_only=True)
        told[checkpoint.step, "state"] = list(_leaves(state))
        told[checkpoint.step, "figures"] = checkpoint.validation
        told[checkpoint.step, "weights"] = (checkpoint.folder / "model.safetensors").read_bytes()
    told["best"] = (folder / "checkpoints" / "best").readlink()
    return told


def _leaves(value):
    if isinstance(value, dict):
        for key in value:
            yield key
            yield from _leaves(value[key])
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    else:
        yield value.numpy().tobytes() if isinstance(value, torch.Tensor) else value


def header_of(path):
    """Return the header of a compressed or plain file of rollouts."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
        return json.loads(file.readline())
