"""Training runs of seconds, and what they leave."""

from harness import config as configs
from harness.runs import checkpoints, metrics
from harness.training import setup

SMALL = [
    "policy.tiny.layers=1",
    "policy.tiny.hidden=48",
    "policy.tiny.heads=4",
    "policy.tiny.feed_forward=64",
    "warmstart.episodes=20",
    "warmstart.steps=30",
    "warmstart.batch_size=16",
    "warmstart.learning_rate=5e-3",
    "env.max_turns=8",
    "run.threads=1",
    "log.outputs=['tensorboard']",
]


def small(tmp_path, name, *overrides):
    """A recipe of seconds in which the policy neither wins nor loses everything."""
    settings = [f"run.output='{tmp_path}'", f"run.name={name!r}", *SMALL, *overrides]
    return configs.load("corridor-tiny", settings)


def run(config):
    trainer = setup.start(config)
    trainer.run()
    return trainer


def lines(trainer):
    """All metrics of a run but those of the clock and the machine."""
    records = metrics.read(trainer.folder.path)
    return [metrics.repeatable(record) for record in records]


def last_checkpoint(trainer):
    return checkpoints.find_all(trainer.folder.path)[-1]
