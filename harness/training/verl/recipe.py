"""The recipe that verl's workers play by, and the tasks that verl draws from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from harness import config as configs
from harness.config import Config
from harness.evaluation.evaluate import choose
from harness.preflight import defaults
from harness.rollouts.build import make_eval_pool, make_pool
from harness.rollouts.env_pool import EnvPool
from harness.training.verl.settings import NAME
from harness.types import plugins
from harness.types.errors import ConfigError

PLACE: Final = "agentgyms.recipe"
"""Setting of verl that names the recipe: a built-in one, a TOML file, or a run's `config.json`."""


def recipe_of(settings: Any) -> Config:
    """Return the recipe, resolved, that verl's settings (of OmegaConf) name."""
    from omegaconf import OmegaConf

    name = OmegaConf.select(settings, PLACE)
    if not isinstance(name, str):
        raise ConfigError(
            f"verl's settings name no recipe: add +{PLACE}=NAME, with a recipe that `harness "
            "recipes` lists, a TOML file, or a run's config.json"
        )
    if name.endswith(".json"):
        config = configs.from_dict(json.loads(Path(name).read_text(encoding="utf-8")))
    else:
        config = configs.load(name)
    plugins.load(config.run.plugins)
    return defaults.resolve(config, "cuda")


def write_tasks(config: Config, folder: Path) -> dict[str, str]:
    """Write the tasks of training and of evaluation as verl reads them, and return its settings."""
    from datasets import Dataset

    found = {}
    for name, split in (("train", config.env.train_split), ("val", str(config.eval.split))):
        is_evaluated = name == "val"
        pool = pool_of(config, split, is_evaluated=is_evaluated)
        tasks = choose(
            pool.tasks(), config.eval.count(split, final=False) if is_evaluated else None
        )
        pool.close()
        path = folder / f"{name}.parquet"
        rows = list(_rows(tasks, split, is_evaluated=is_evaluated))
        Dataset.from_list(rows).to_parquet(str(path))
        found[f"data.{name}_files"] = str(path)
    return found


def pool_of(config: Config, split: str, *, is_evaluated: bool) -> EnvPool:
    """Return the environments of a split, for evaluations or for training."""
    return make_eval_pool(config, split) if is_evaluated else make_pool(config, split, 1)


def _rows(tasks: Sequence[str], split: str, *, is_evaluated: bool) -> Iterator[dict[str, Any]]:
    for index, task in enumerate(tasks):
        yield {
            "data_source": split,
            "agent_name": NAME,
            "prompt": [{"role": "user", "content": task}],  # the environment makes the prompts
            "reward_model": {"style": "rule", "ground_truth": ""},
            "extra_info": {"index": index, "task": task, "is_evaluated": is_evaluated},
        }
