"""Translates a recipe into settings of verl 0.9, or names the settings without counterpart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from harness import config as configs
from harness.config import CONTEXTS, Config, methods
from harness.model.weights import converted
from harness.preflight import defaults
from harness.training.verl.setting_map import REFUSED, THEIRS
from harness.types.errors import ConfigError

NAME: Final = "agentgyms"
"""Under which verl finds the episodes, the trainer and our settings."""
ENDED: Final = "ended.txt"
"""File beside verl's checkpoints with the reason of a failure."""

_ACTOR: Final = "actor_rollout_ref.actor"
_MODEL: Final = "actor_rollout_ref.model"
_ROLLOUT: Final = "actor_rollout_ref.rollout"
_CORRECTION: Final = "algorithm.rollout_correction"
_AGGREGATIONS: Final = {
    "token_mean": "token-mean",
    "sequence_mean_token_mean": "seq-mean-token-mean",
    "sequence_mean_token_sum": "seq-mean-token-sum",
}
_KL: Final = {"k1": "kl", "k2": "mse", "k3": "low_var_kl"}
_NO_DUAL_CLIP: Final = 1e9
"""A bound that no ratio reaches: verl limits its logarithm to 20."""
_DTYPES: Final = {
    None: ("fp32", "bfloat16"),
    "mixed": ("fp32", "bfloat16"),
    "float32": ("fp32", "float32"),
    "bfloat16": ("bf16", "bfloat16"),
}
"""Precision -> dtype of verl's weights, and of its arithmetic and its servers."""


def translate(config: Config) -> dict[str, Any]:
    """Return verl's settings for a recipe, by their dotted names; others keep verl's defaults.

    Settings of episodes, prompts, rewards and credit are absent: our part of the run reads them
    from the recipe. Machines (`trainer.nnodes` and `trainer.n_gpus_per_node`) are absent, too.
    Raises `ConfigError` with the names of all settings that differ from their default and have no
    counterpart in verl.
    """
    config = defaults.resolve(config, "cuda")
    refused = [*_refused(config), *_refused_values(config)]
    if refused:
        lines = "".join(f"\n- {one}" for one in refused)
        raise ConfigError(f"verl cannot train this recipe:{lines}")
    values = flat(config)
    found = {place: values[name] for name, place in THEIRS.items()} | _FIXED
    for part in (_policy, _lengths, _rollout, _update, _evaluation, _log):
        found |= part(config)
    return found


def flat(config: configs.Section) -> dict[str, Any]:
    """Return all settings by their dotted names, free tables as one value."""
    found: dict[str, Any] = {}
    for name, value in config:
        if isinstance(value, configs.Section):
            found |= {f"{name}.{inner}": one for inner, one in flat(value).items()}
        else:
            found[name] = value
    return found


def place_of(name: str, places: Mapping[str, Any]) -> str | None:
    """Return the setting, or the section that it is in, that a table of places has; else None."""
    parts = name.split(".")
    names = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((one for one in names if one in places), None)


def _refused(config: Config) -> Iterator[str]:
    """Yield a line for each setting without a counterpart that is not at its default."""
    usual = flat(defaults.resolve(Config(), "cuda"))
    named = set()
    for name, value in flat(config).items():
        place = place_of(name, REFUSED)
        if place is not None and value != usual[name] and place not in named:
            named.add(place)
            yield f"{name} is {value!r:.60}: {REFUSED[place]}"


def _refused_values(config: Config) -> Iterator[str]:
    """Yield a line for each value without a counterpart of settings that have one."""
    row, rollout, agent = methods.get(config.method.name), config.rollout, config.agent
    if row.loss != "clipped" or row.actor != "policy":
        yield f"method.name is {row.name!r}: it does not learn from advantages of its own episodes"
    if config.method.annotators:
        names = ", ".join(config.method.annotators)
        yield (
            f"method.name is {row.name!r}: its credit needs {names}, which another model or the "
            "environment gives in this harness's own trainer; choose one that needs none"
        )
    if agent.context == CONTEXTS[-1]:
        yield "agent.context is 'summary': use 'window' or 'transcript'"
    if rollout.backend == "server":
        yield "rollout.backend is 'server': verl starts its servers itself, use 'vllm'"
    if rollout.correction == "reject":
        yield "rollout.correction is 'reject': give verl algorithm.rollout_correction.rollout_rs"
    if rollout.enough_members not in (None, rollout.group_size):
        yield (
            f"rollout.enough_members is {rollout.enough_members}: verl plays whole groups, set it "
            f"to {rollout.group_size}"
        )
    if rollout.enough_share not in (None, 1.0):
        yield f"rollout.enough_share is {rollout.enough_share}: set it to 1"
    if config.optimizer.schedule == "linear":
        yield "optimizer.schedule is 'linear': verl has 'constant' and 'cosine'"
    if (
        row.loss == "clipped"
        and config.method.loss["ratio"] == "turn"
        and agent.context != "window"
    ):
        yield "method.loss.ratio is 'turn' in a transcript: verl has 'token' and 'sequence'"


_FIXED: Final = {
    "trainer.v1.trainer_mode": NAME,
    "trainer.total_epochs": 1_000_000,  # its steps end the run
    "trainer.project_name": NAME,
    "data.return_raw_chat": True,
    "data.filter_overlong_prompts": False,
    "data.dataloader_num_workers": 0,
    f"{_ROLLOUT}.agent.default_agent_loop": NAME,
    f"{_ROLLOUT}.calculate_log_probs": True,
    f"{_ACTOR}.use_dynamic_bsz": True,
    f"{_ACTOR}.strategy": "fsdp2",
    "algorithm.adv_estimator": "grpo",  # ours comes in its place; this one needs no critic
    "algorithm.use_kl_in_reward": False,
}
"""The settings that are the same for all recipes."""


def _policy(config: Config) -> dict[str, Any]:
    policy, targets = config.policy, list(config.policy.lora.targets)
    weights, arithmetic = _DTYPES[policy.precision]
    found: dict[str, Any] = {
        f"{_MODEL}.path": converted.folder_of(policy.model),
        f"{_ACTOR}.fsdp_config.model_dtype": weights,
        f"{_ACTOR}.fsdp_config.mixed_precision": {
            "param_dtype": "fp32" if arithmetic == "float32" else "bf16",
            "reduce_dtype": "fp32",
        },
        f"{_ROLLOUT}.dtype": arithmetic,
        f"{_ACTOR}.fsdp_config.optimizer_offload": policy.offload is not None,
        f"{_ACTOR}.fsdp_config.param_offload": policy.offload == "parameters",
        f"{_MODEL}.target_modules": targets[0] if targets == ["all-linear"] else targets,
    }
    if policy.attention is not None:
        found[f"{_MODEL}.override_config"] = {"attn_implementation": policy.attention}
    return found


def _lengths(config: Config) -> dict[str, Any]:
    """Return the lengths of sequences: verl counts a prompt, and what follows it, apart."""
    from harness.preflight.model_shapes import shape_of

    whole = config.agent.max_context or shape_of(config.policy).max_length
    answer = config.agent.answer_tokens
    transcript = config.agent.context == "transcript"
    return {
        "data.max_prompt_length": whole if transcript else whole - answer,
        "data.max_response_length": whole if transcript else answer,
        f"{_ROLLOUT}.max_model_len": whole,
    }


def _rollout(config: Config) -> dict[str, Any]:
    rollout, engine = config.rollout, dict(config.rollout.engine)
    found: dict[str, Any] = {
        f"{_ROLLOUT}.name": "vllm",
        f"{_ROLLOUT}.tensor_model_parallel_size": engine.pop("tensor_parallel_size", 1),
        f"{_CORRECTION}.bypass_mode": rollout.old_logprobs == "rollout",
    }
    if "gpu_memory_utilization" in engine:
        found[f"{_ROLLOUT}.gpu_memory_utilization"] = engine.pop("gpu_memory_utilization")
    if engine:
        found[f"{_ROLLOUT}.engine_kwargs.vllm"] = engine
    if rollout.correction == "clip":
        found[f"{_CORRECTION}.rollout_is"] = "token"
        found[f"{_CORRECTION}.rollout_is_threshold"] = rollout.correction_bounds["cap"]
    return found


def _update(config: Config) -> dict[str, Any]:
    loss = config.method.loss
    mode = _AGGREGATIONS[loss["aggregation"]]
    found: dict[str, Any] = {
        f"{_ACTOR}.policy_loss.loss_mode": "vanilla" if loss["ratio"] == "token" else "gspo",
        f"{_ACTOR}.clip_ratio_low": loss["clip_low"],
        f"{_ACTOR}.clip_ratio_high": loss["clip_high"],
        f"{_ACTOR}.clip_ratio_c": loss["dual_clip"] or _NO_DUAL_CLIP,
        f"{_ACTOR}.loss_agg_mode": mode,
        f"{_ACTOR}.use_kl_loss": loss["kl_coefficient"] > 0,
        f"{_ACTOR}.kl_loss_coef": loss["kl_coefficient"],
        f"{_ACTOR}.kl_loss_type": _KL[loss["kl"]],
        f"{_ACTOR}.entropy_coeff": loss["entropy_coefficient"],
        f"{_ACTOR}.optim.betas": list(config.optimizer.betas),
        f"{_MODEL}.use_remove_padding": config.optimizer.packing != "padded",
    }
    if loss["constant"] is not None:
        found[f"{_ACTOR}.loss_agg_mode"] = f"{mode}-norm"
        found[f"{_ACTOR}.loss_scale_factor"] = loss["constant"]
    return found


def _evaluation(config: Config) -> dict[str, Any]:
    evaluation = config.eval
    return {
        "trainer.test_freq": evaluation.every or -1,
        "trainer.val_before_train": True,
        f"{_ROLLOUT}.val_kwargs.temperature": evaluation.temperature,
        f"{_ROLLOUT}.val_kwargs.do_sample": evaluation.temperature > 0,
    }


def _log(config: Config) -> dict[str, Any]:
    trackers = [name for name in config.log.outputs if name != "pictures"]
    found: dict[str, Any] = {"trainer.logger": ["console", *trackers]}
    project = config.log.project
    return found | ({"trainer.project_name": project} if project else {})
