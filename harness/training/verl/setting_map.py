"""Where each setting of a recipe goes when verl trains: to verl, to our part in it, or nowhere."""

from __future__ import annotations

from typing import Final

OURS: Final = frozenset(
    {
        *("run.name", "run.output", "run.keep_rollouts", "run.threads", "run.plugins", "swept"),
        *("env.id", "env.train_split", "env.max_turns", "env.kwargs"),
        *("policy.chat_template_kwargs", "policy.tiny"),
        *("agent.style", "agent.tool_format", "agent.context", "agent.window", "agent.scratchpad"),
        "agent.max_observation",
        *("agent.summary_tokens", "rollout.enough_turns", "rollout.max_live"),
        *("rollout.enough_members", "rollout.enough_share"),
        *("method.name", "method.preset", "method.reward", "method.reward_scale"),
        *("method.overlong_share", "method.credit"),
        *("optimizer.mini_batches", "optimizer.mini_batch_size"),
        *("warmstart.episodes", "warmstart.expert", "warmstart.noise", "warmstart.steps"),
        *("warmstart.batch_size", "warmstart.learning_rate"),
        *("eval.split", "eval.tasks", "eval.split_tasks", "eval.max_turns", "eval.kwargs"),
        "method.annotators",
    }
)
"""Settings that our part reads: episodes, prompts, rewards, credit, the warm start; and those that
only matter beside one that is refused."""

THEIRS: Final = {
    "run.steps": "trainer.total_training_steps",
    "run.seed": "data.seed",
    "policy.gradient_checkpointing": "actor_rollout_ref.model.enable_gradient_checkpointing",
    "policy.reduce_once": (
        "actor_rollout_ref.actor.fsdp_config.use_no_sync_for_gradient_accumulation"
    ),
    "policy.sequence_parallel": "actor_rollout_ref.actor.ulysses_sequence_parallel_size",
    "policy.lora.rank": "actor_rollout_ref.model.lora_rank",
    "policy.lora.alpha": "actor_rollout_ref.model.lora_alpha",
    "agent.temperature": "actor_rollout_ref.rollout.temperature",
    "rollout.tasks_per_step": "data.train_batch_size",
    "rollout.group_size": "actor_rollout_ref.rollout.n",
    "rollout.max_batch": "actor_rollout_ref.rollout.max_num_seqs",
    "rollout.sleep": "actor_rollout_ref.rollout.free_cache_engine",
    "optimizer.learning_rate": "actor_rollout_ref.actor.optim.lr",
    "optimizer.schedule": "actor_rollout_ref.actor.optim.lr_scheduler_type",
    "optimizer.final_share": "actor_rollout_ref.actor.optim.min_lr_ratio",
    "optimizer.warmup_steps": "actor_rollout_ref.actor.optim.lr_warmup_steps",
    "optimizer.weight_decay": "actor_rollout_ref.actor.optim.weight_decay",
    "optimizer.betas": "actor_rollout_ref.actor.optim.betas",
    "optimizer.max_grad_norm": "actor_rollout_ref.actor.optim.clip_grad",
    "optimizer.epochs": "actor_rollout_ref.actor.ppo_epochs",
    "optimizer.micro_batch_tokens": "actor_rollout_ref.actor.ppo_max_token_len_per_gpu",
    "checkpoint.every": "trainer.save_freq",
    "checkpoint.keep": "trainer.max_actor_ckpt_to_keep",
}
"""Settings that verl has under another name, with the same values."""

TRANSLATED: Final = frozenset(
    {
        *("policy.model", "policy.precision", "policy.attention", "policy.offload"),
        *("policy.lora.targets", "agent.max_tokens", "agent.max_context"),
        *("rollout.backend", "rollout.engine", "rollout.old_logprobs"),
        *("rollout.correction", "rollout.correction_bounds"),
        *("method.loss", "optimizer.packing", "eval.every", "eval.temperature"),
        *("log.outputs", "log.project"),
    }
)
"""Settings whose values verl writes otherwise; see `settings.translate`."""

REFUSED: Final = {
    "policy.device": "verl places its workers itself",
    "policy.replicas": "give verl actor_rollout_ref.actor.fsdp_config.fsdp_size",
    "policy.ema": "verl averages no weights",
    "policy.lora.dropout": "verl's adapters have none",
    "agent.thoughts": "an episode is one sequence there, or one for each turn: use 'keep'",
    "agent.max_thought_tokens": "verl's servers answer without a limit of thoughts",
    "rollout.urls": "verl starts its servers itself",
    "rollout.transfer": "verl moves the weights itself",
    "rollout.cache_gb": "verl's servers keep prefixes themselves",
    "rollout.ahead": "this trainer of verl plays and learns in turn",
    "rollout.dynamic_sampling": "set it to false; verl's algorithm.filter_groups is another rule",
    "rollout.recorded": "verl plays each step",
    "rollout.branch": "verl's episodes have no forks",
    "rollout.curriculum": "verl draws all tasks alike",
    "rollout.gateway": "verl's own workers play",
    "method.rows": "credit is that of turns there: use 'turn'",
    "optimizer.name": "use 'adamw'",
    "eval.final_splits": "set it to [], and use `harness eval --model RUN` after the run",
    "checkpoint.keep_best": "verl keeps the newest alone",
    "checkpoint.best": "verl keeps the newest alone",
    "checkpoint.in_background": "verl waits for its files",
    "log.price_per_hour": "costs are not counted there",
}
"""Settings that have no counterpart: any but the default is refused, and this says what to do. A
name may stand for a whole section."""
