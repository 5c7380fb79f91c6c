"""Recipes on a tiny model, with few and short episodes on generated tasks."""

from harness import config as configs
from harness import prompts
from harness.preflight.defaults import credit_settings

QUICK = (
    "run.steps=2",
    "eval.every=1",
    "checkpoint.every=1",
    "log.outputs=[]",
)
"""Two short steps that leave metrics, evaluations and checkpoints."""

NAMES = sorted(configs.list_recipes())

_SMALL = (
    "run.steps=1",
    "run.threads=1",
    "policy.tiny={layers=1, hidden=32, heads=2, feed_forward=32, max_length=32768}",
    "policy.tiny.vocabulary=4000",
    "agent.max_tokens=6",
    "env.max_turns=3",
    "rollout.backend='hf'",
    "rollout.engine={}",
    "rollout.urls=[]",
    "rollout.sleep=false",
    "rollout.tasks_per_step=2",
    "rollout.max_live=4",
    "rollout.max_batch=4",
    "warmstart.episodes=2",
    "warmstart.steps=1",
    "warmstart.batch_size=1",
    "eval.tasks=1",
    "eval.every=0",
    "eval.max_turns=2",
    "eval.final_splits=[]",
    "log.outputs=['tensorboard']",
)
"""All recipes' sizes. The method with its loss and annotators, the context and what is learned with
are the recipe's own."""

_OFFLINE = {
    "agentgyms/ALFWorld-v0": ("env.kwargs={}",),
    "agentgyms/AppWorld-v0": (),
    "agentgyms/SOTOPIA-v0": ("env.train_split='train'", "eval.split='valid'"),
    "agentgyms/SearchQA-v0": ("env.kwargs={}",),
    "agentgyms/Sokoban-v0": ("env.kwargs={rooms=60}",),
    "agentgyms/VisualSokoban-v0": ("env.kwargs={cell_pixels=16, rooms=60, grid=true}",),
    "agentgyms/WebShop-v0": ("env.kwargs={}", "eval.split='valid'"),
}
"""Generated tasks and scripted partners in place of data and models that are elsewhere."""

_SEES = ("policy.model=tiny-vl", "policy.tiny.hidden=64", "policy.tiny.heads=8")
_READS = ("policy.model=tiny",)
"""The model of a prompt that shows an image, and of one that does not."""


def small(name, folder, scorers, given=()):
    """Return a recipe made small.

    Args:
        name: Of the recipe.
        folder: Of its run.
        scorers: Folder of a tiny scorer by its kind.
        given: Settings that come before: what is small wins.
    """
    where = [f"run.output='{folder}'", "run.name=run"]
    return configs.load(name, [*shrinking(name, scorers, given), *where])


def shrinking(name, scorers, given=()):
    """Return the settings that make a recipe small, those given first."""
    whole = configs.load(name, given)
    shows_image = prompts.load(whole.agent.style, whole.env.id).shows_image
    model = _SEES if shows_image else _READS
    changes = [*given, *_SMALL, *model, *_OFFLINE.get(whole.env.id, ())]
    if whole.env.id == "agentgyms/AppWorld-v0":
        kept = {k: v for k, v in whole.env.kwargs.items() if k in ("difficulty", "scenarios")}
        text = ", ".join(f"{key}={value!r}" for key, value in kept.items())
        changes.append(f"env.kwargs={{{text}}}")
    if whole.env.id == "agentgyms/SOTOPIA-v0":
        changes.append(f"env.kwargs={{partner='{whole.env.kwargs.get('partner', 'scripted')}'}}")
    changes.append(f"rollout.group_size={min(2, whole.rollout.group_size)}")
    if whole.rollout.enough_members is not None:
        changes.append("rollout.enough_members=2")
    config = configs.load(name, changes)
    if config.method.annotators.get("process_reward", {}).get("model"):
        changes.append("method.annotators.process_reward.model=tiny")
    for key in ("scorer", "match"):
        kind = scorer_of(config, key)
        if kind in scorers:
            changes.append(f"method.credit.{key}='{kind}:{scorers[kind]}'")
    return changes


def scorer_of(config, key):
    """Return the kind of scorer that a run's estimator is given under a key."""
    return str(credit_settings(config).get(key)).partition(":")[0]
