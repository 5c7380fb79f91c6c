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
    return defaults.resolve(config)


def write_tasks(config: Config, folder: Path) -> dict[str, str]:
    """Write the tasks of training and of evaluation as verl reads them, and return its settings."""
    from datasets import Dataset

    pool = make_pool(config, config.env.train_split, 1)
    trained = list(pool.tasks())
    pool.close()
    split = str(config.eval.split)
    pool = make_eval_pool(config, split)
    evaluated = choose(pool.tasks(), config.eval.tasks)
    pool.close()
    found = {}
    for name, tasks, own in (
        ("train", trained, config.env.train_split),
        ("val", evaluated, split),
    ):
        path = folder / f"{name}.parquet"
        Dataset.from_list(list(_rows(tasks, own, is_evaluated=name == "val"))).to_parquet(str(path))
        found[f"data.{name}_files"] = str(path)
    return found


def _rows(tasks: Sequence[str], split: str, *, is_evaluated: bool) -> Iterator[dict[str, Any]]:
    for index, task in enumerate(tasks):
        yield {
            "data_source": split,
            "agent_name": NAME,
            "prompt": [{"role": "user", "content": task}],  # the environment makes the prompts
            "reward_model": {"style": "rule", "ground_truth": ""},
            "extra_info": {"index": index, "task": task, "is_evaluated": is_evaluated},
        }
