"""Trains in verl with the credit of this harness: the trainer mode `agentgyms`."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import torch
import transfer_queue
from omegaconf import open_dict
from tensordict import TensorDict
from verl.trainer.ppo.v1.trainer_base import register_trainer
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync

from agentgyms.data import writing
from harness.annotators import AnnotatorContext, semantic
from harness.config import Config, methods
from harness.evaluation.evaluate import summarise
from harness.preflight import recorded_files
from harness.preflight.defaults import credit_settings
from harness.rollouts import rollout_files
from harness.runs.metrics import MetricsLog
from harness.runs.runfolder import RunFolder
from harness.training import saving
from harness.training.credit_step import Credit, CreditAssignment
from harness.training.players.player import rollout_figures
from harness.training.verl import shutdown
from harness.training.verl.episodes import ROLLOUT, TURNS, unpacked
from harness.training.verl.recipe import recipe_of
from harness.training.verl.settings import ENDED, NAME
from harness.types.arrays import Floats
from harness.types.rollout import Rollout

_FIGURES: Final = {
    "actor/pg_loss": "update/loss",
    "actor/grad_norm": "update/grad_norm",
    "actor/lr": "update/learning_rate",
    "actor/entropy": "update/entropy",
    "actor/ppo_kl": "update/kl_old",
    "actor/pg_clipfrac": "update/clipped",
    "actor/kl_loss": "update/kl_reference",
    "timing_s/gen": "time/collect_s",
    "timing_s/update_actor": "time/update_s",
    "timing_s/step": "time/step_s",
}
"""Figures of verl, and their names in a run's metrics."""


@register_trainer(NAME)
class AgentGymsTrainer(PPOTrainerSync):  # type: ignore[misc]
    """verl's synchronous trainer, whose advantages are those of an estimator of `harness.credit`.

    The run's folder is the parent of `trainer.default_local_dir`: metrics, evaluations and models
    are written there under this harness's names, beside verl's files.
    """

    def __init__(self, config: Any) -> None:
        with open_dict(config):  # by which verl chooses a queue that waits for whole steps
            config.trainer.v1.trainer_mode = "sync"
        super().__init__(config)
        self._recipe = recipe_of(config)
        self._credit = credit_of(self._recipe)
        self._folder = RunFolder(Path(config.trainer.default_local_dir).parent)
        self._log: MetricsLog | None = None
        self._rows = 0  # of the step, without padding

    def on_init_end(self) -> None:
        """Open the metrics, without those of steps that run again."""
        super().on_init_end()
        self._folder.path.joinpath("evaluations").mkdir(parents=True, exist_ok=True)
        self._log = MetricsLog(self._folder.path, self.global_steps or None)

    def fit(self, agent_loop_manager: Any) -> None:
        """Train; if the run fails, its folder has the reason."""
        shutdown.watch(self.replay_buffer, agent_loop_manager.agent_loop_workers)
        try:
            super().fit(agent_loop_manager)
        except Exception as e:
            with contextlib.suppress(OSError):  # a disk may be full
                path = Path(self.config.trainer.default_local_dir) / ENDED
                writing.write(path, f"at step {self.global_steps}, {shutdown.reason(e)}")
            raise

    def _compute_advantage(self, batch: Any, metrics: dict[str, float]) -> Any:
        """Let verl correct for its generator, then replace its advantages by ours."""
        batch = super()._compute_advantage(batch, metrics)
        data = transfer_queue.kv_batch_get(
            keys=batch.keys,
            partition_id=batch.partition_id,
            select_fields=["response_mask", "extra_fields"],
        )
        own = [not tag.get("is_padding", False) for tag in batch.tags]
        extra_fields = [_plain(one) for one in data["extra_fields"]]
        rollouts, first = rollouts_of(batch.keys, extra_fields, own)
        credit = self._credit.assign(rollouts)
        self._keep(rollouts, credit)
        lost = self._recipe.rollout.tasks_per_step - len({one.group for one in rollouts})
        metrics |= rollout_figures(rollouts, lost) | self._credit.diagnose(credit)
        masks = data["response_mask"].unbind()  # a jagged tensor: each row has its length, [T]
        rows = [
            torch.zeros(mask.shape[0]) if start is None else _row(credit, start, about[TURNS])
            for mask, start, about in zip(masks, first, extra_fields, strict=True)
        ]
        # The loss reads `advantages` alone; verl's metrics read `returns` too.
        nested = torch.nested.as_nested_tensor(rows, layout=torch.jagged)
        fields = TensorDict(
            {"advantages": nested, "returns": nested.clone()}, batch_size=len(batch)
        )
        return transfer_queue.kv_batch_put(
            keys=batch.keys, partition_id=batch.partition_id, fields=fields
        )

    def _keep(self, rollouts: Sequence[Rollout], credit: Credit) -> None:
        every, step, config = self._recipe.run.keep_rollouts, self.global_steps, self._recipe
        whole = every > 0 and step % every == 0
        if not whole and step != config.run.steps:
            return
        about = recorded_files.step_header(config, "", step, tokens=whole)
        path, columns = self._folder.rollouts(step), credit.columns()
        rollout_files.write(path, rollouts, columns, tokens=whole, images=whole, about=about)

    def _get_required_batch_multiple(self, dp_size: int) -> int:
        """Return the multiple of rows that equal mini-batches, shared by all workers, need."""
        return self._mini_batches * math.lcm(dp_size, self._members)

    @property
    def _members(self) -> int:
        """Rollouts of a group, in multiples of which verl counts a mini-batch."""
        return int(self.config.actor_rollout_ref.rollout.n)

    @property
    def _mini_batches(self) -> int:
        optimizer = self._recipe.optimizer
        if optimizer.mini_batch_size is None:
            return optimizer.mini_batches
        return max(1, math.ceil(self._rows / optimizer.mini_batch_size))

    def _balance_batch(self, batch: Any, *args: Any, **kwargs: Any) -> Any:
        """Remember the number of rows before verl adds others."""
        self._rows = len(batch)
        return super()._balance_batch(batch, *args, **kwargs)

    def _update_actor(self, batch: Any, metrics: dict[str, float]) -> Any:
        """Update with the recipe's number of mini-batches, whatever the number of rows."""
        with open_dict(self.config):
            size = len(batch) // (self._mini_batches * self._members)
            self.config.actor_rollout_ref.actor.ppo_mini_batch_size = size
        return super()._update_actor(batch, metrics)

    def _compute_metrics(self, batch: Any, metrics: dict[str, Any], *args: Any, **kw: Any) -> None:
        super()._compute_metrics(batch, metrics, *args, **kw)
        figures = {own: float(metrics[name]) for name, own in _FIGURES.items() if name in metrics}
        ours = ("rollout/", "credit/")
        figures |= {name: float(metrics[name]) for name in metrics if name.startswith(ours)}
        assert self._log is not None
        self._log.write(self.global_steps, figures)
        self._log.flush()

    def _val_metrics_update(
        self,
        data_sources: Any,
        sample_uids: Any,
        extra_fields: Mapping[str, Any],
        *args: Any,
        **kw: Any,
    ) -> dict[str, float]:
        rollouts = [unpacked(one) for one in extra_fields[ROLLOUT] if one is not None]
        result = summarise(rollouts, str(self._recipe.eval.split))
        self._folder.write_evaluation(self.global_steps, result.record())
        assert self._log is not None
        self._log.write(self.global_steps, result.metrics())
        return result.metrics()

    def _save_checkpoint(self) -> None:
        """Save verl's checkpoint, and the model in it, if there is one, as one of this harness."""
        super()._save_checkpoint()
        if "hf_model" not in self.config.actor_rollout_ref.actor.checkpoint.save_contents:
            return
        folder = Path(self.config.trainer.default_local_dir) / f"global_step_{self.global_steps}"
        saving.adopt(
            self._folder.path,
            self.global_steps,
            folder / "actor" / "huggingface",
            keep=self._recipe.checkpoint.keep,
        )


def credit_of(config: Config) -> CreditAssignment:
    """Return the credit assignment of a recipe whose estimator needs no annotator."""
    settings = semantic.resolve(credit_settings(config), config.policy.device)
    nothing = AnnotatorContext(cast(Any, None))  # no annotator asks for a policy
    return CreditAssignment(config, methods.get(config.method.name), settings, nothing)


def rollouts_of(
    keys: Sequence[str], extra_fields: Sequence[Mapping[str, Any]], own: Sequence[bool]
) -> tuple[list[Rollout], list[int | None]]:
    """Return the rollouts of a batch's rows, group by group, and each row's first turn.

    A key is `{uid of the group}_{member}_{number of the row}`; the extra fields of an episode's
    last row have its rollout. The first turn is a number in the turn table, None for verl's padding
    rows.
    """
    episodes = {}
    for key, about, is_own in zip(keys, extra_fields, own, strict=True):
        if is_own and about.get(ROLLOUT) is not None:
            uid, member, _ = key.rsplit("_", 2)
            episodes[uid, int(member)] = unpacked(about[ROLLOUT])
    ordered = sorted(episodes, key=lambda name: (episodes[name].task_id, name))
    groups = {uid: number for number, uid in enumerate(dict.fromkeys(uid for uid, _ in ordered))}
    rollouts = [replace(episodes[name], group=groups[name[0]], member=name[1]) for name in ordered]
    sizes = np.array([0, *(len(one.turns) for one in rollouts)])
    start = dict(zip(ordered, np.cumsum(sizes)[:-1].tolist(), strict=True))
    first: list[int | None] = []
    for key, is_own in zip(keys, own, strict=True):
        uid, member, _ = key.rsplit("_", 2) if is_own else ("", "0", "")
        first.append(start[uid, int(member)] if is_own else None)
    return rollouts, first


def _row(credit: Credit, start: int, turns: Sequence[int]) -> torch.Tensor:
    """Return the advantages of a row's response. Shape [T]."""
    numbers, advantage = np.asarray(turns), cast(Floats, credit.advantage)
    values = np.where(numbers < 0, 0.0, advantage[start + numbers.clip(0)])
    return torch.tensor(values, dtype=torch.float32)


def _plain(value: Any) -> Mapping[str, Any]:
    found: Mapping[str, Any] = getattr(value, "data", value)
    return found
