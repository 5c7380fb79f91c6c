"""Resolves a recipe: writes out all defaults, those of credit, loss and environment included."""

from __future__ import annotations

import inspect
from typing import Any, Final

from agentgyms.registration import GroupEnv, find_maker
from harness import annotators, credit, losses
from harness.config import TINY_MODELS, Config, methods, replace
from harness.config.rollout_settings import complete_bounds
from harness.credit.registry import hyperparameters_of, layers, needs, preset
from harness.credit.table import ATOMS
from harness.preflight import recorded_files
from harness.preflight.machine import Machine
from harness.prompts import answer_limits, tool_formats
from harness.types import plugins
from harness.types.errors import ConfigError


def credit_settings(config: Config) -> dict[str, Any]:
    """Return the estimator's hyperparameters: defaults, preset, the method's row, the recipe."""
    method = methods.get(config.method.name)
    own = {**method.credit, **config.method.credit}
    chosen = {**preset(config.method.preset, method.estimator, own), **own}
    credit.check(method.estimator, chosen)
    return hyperparameters_of(method.estimator, own) | chosen


def loss_settings(config: Config) -> dict[str, Any]:
    """Return the loss's hyperparameters: defaults, the method's row, the recipe.

    If a policy loss sums over tokens and divides by a constant (Dr. GRPO), the constant is the
    run's token limit of a response, as in its released code. Raises `ConfigError` for an unknown
    name.
    """
    method = methods.get(config.method.name)
    chosen = {**method.loss_settings, **config.method.loss}
    losses.check(method.loss, chosen)
    settings = losses.hyperparameters(method.loss) | chosen
    sums = settings.get("aggregation") == "sequence_mean_token_sum"
    if method.loss == "clipped" and sums and settings["constant"] is None:
        settings["constant"] = float(config.agent.answer_tokens)
    return settings


def annotator_settings(config: Config) -> dict[str, dict[str, Any]]:
    """Return the annotators of a run with all their settings: defaults, the method's row, recipe.

    They fill the columns that the estimator reads. Raises `ConfigError` if none fills a column, or
    the recipe has settings of another annotator, or wrong ones.
    """
    method = methods.get(config.method.name)
    given = config.method.annotators
    chosen = _annotators_of(config)
    for name, values in given.items():
        if name not in chosen:
            known = ", ".join(chosen) or "none"
            raise ConfigError(f"method {method.name} has no annotator {name!r}: expected {known}")
        if not isinstance(values, dict):
            raise ConfigError(f"method.annotators.{name} must be a section, got {values!r}")
    return {
        name: annotators.complete(name, {**method.annotators.get(name, {}), **given.get(name, {})})
        for name in chosen
    }


def _annotators_of(config: Config) -> list[str]:
    method, settings = methods.get(config.method.name), credit_settings(config)
    columns = dict.fromkeys(needs(method.estimator, settings))
    own = layers(method.estimator, settings)
    if any(layer.get("kl_coefficient") for _, layer in own):  # REINFORCE++ reads `kl` only then
        columns["kl"] = None
    if config.rollout.branch.at == "pivotal":
        columns["state_value"] = None
    preferred = [*method.annotators, *annotators.names()]
    chosen = []
    for column in (name for name in columns if name not in ATOMS):
        fills = [name for name in preferred if column in annotators.columns(name)]
        if not fills:
            raise ConfigError(
                f"method {method.name} reads the column {column!r}, which no annotator fills"
            )
        chosen.append(fills[0])
    return chosen


_RUN_DEFAULTS: Final = {
    "rollout.dynamic_sampling": False,
    "rollout.enough_members": None,
    "rollout.enough_share": None,
    "rollout.enough_turns": 0,
    "method.overlong_share": 0.0,
    "optimizer.epochs": 1,
}
"""Settings that a recipe may leave to its method, with their defaults if the method has none."""


_HELD_OUT: Final = ("valid_seen", "valid", "validation", "valid_unseen", "dev", "test")
"""Splits to evaluate during training, the first that an environment has."""


def _evaluated_split(config: Config) -> str:
    """Return the split to evaluate during training: the only one beside the training's."""
    env = config.env
    if config.eval.split is not None:
        return config.eval.split
    maker, _ = find_maker(env.id)
    if inspect.isclass(maker):
        splits = tuple(getattr(maker, "splits", ()))
    else:
        with GroupEnv(env.id, 1, **env.kwargs) as group:
            splits = group.envs[0].splits
    others = [split for split in splits if split != env.train_split]
    chosen = [split for split in _HELD_OUT if split in others] or others
    if not chosen or (len(others) > 1 and chosen is others):
        raise ConfigError(
            f"eval.split is not set, and {env.id} has the splits {', '.join(splits)}: set it to "
            "the one to evaluate on, best one whose tasks are not trained on"
        )
    return chosen[0]


def resolve(config: Config, device: str = "") -> Config:
    """Return the configuration with all settings that it leaves to method and environment.

    The run folder keeps the result, so a resumed run is the same when a default changes. `device`
    is torch's type of the device that the model is for, by default this machine's. Raises
    `ConfigError` for an unknown name.
    """
    env = replace(config.env, id=plugins.find_environment(config.env.id))
    agent = replace(config.agent, max_tokens=_answer_tokens(config, env.id, device))
    config = replace(config, env=env, agent=agent)
    row = methods.get(config.method.name)
    method = {
        "rows": config.method.rows or row.rows,
        "annotators": annotator_settings(config),
        "credit": credit_settings(config),
        "loss": loss_settings(config),
    }
    recorded = recorded_files.files_of(config.rollout.recorded)
    rollout = {"recorded": recorded, **_correction(config)}
    sections: dict[str, dict[str, Any]] = {"method": method, "rollout": rollout, "optimizer": {}}
    for name, default in _RUN_DEFAULTS.items():
        section, key = name.split(".")
        if getattr(getattr(config, section), key) is None:
            sections[section][key] = row.run.get(name, default)
    own = sections["rollout"].get("enough_members")
    if own is not None:  # limited by the size of a smaller group
        sections["rollout"]["enough_members"] = min(own, config.rollout.group_size)
    return replace(
        config,
        policy=replace(config.policy, chat_template_kwargs=_template_arguments(config)),
        agent=replace(config.agent, tool_format=_tool_format(config)),
        eval=replace(config.eval, split=_evaluated_split(config)),
        method=replace(config.method, **sections["method"]),
        rollout=replace(config.rollout, **sections["rollout"]),
        optimizer=replace(config.optimizer, **sections["optimizer"]),
    )


def _answer_tokens(config: Config, env_id: str, device: str) -> int:
    own, rollout = config.agent, config.rollout
    if own.max_tokens is not None:
        return own.max_tokens
    device = device or Machine.of(config).kind
    on_cpu = device == "cpu" and rollout.backend == "hf" and rollout.is_live
    return answer_limits.limit(own.style, env_id, on_cpu=on_cpu)


def _correction(config: Config) -> dict[str, Any]:
    """Return the settings of `rollout` that correct the mismatch with the generator."""
    rollout, method = config.rollout, methods.get(config.method.name)
    kind = rollout.correction
    if kind is None:
        other = (
            (rollout.backend != "hf" or rollout.ahead)
            and rollout.is_live
            and method.actor == "policy"
        )
        kind = "clip" if other and losses.is_on_policy(method.loss) else "none"
    bounds = complete_bounds(kind, rollout.correction_bounds)
    return {"correction": kind, "correction_bounds": bounds}


def _template_arguments(config: Config) -> dict[str, Any]:
    if config.policy.model in TINY_MODELS:
        return dict(config.policy.chat_template_kwargs)
    from harness.preflight import chat_template

    return dict(chat_template.arguments(config))


def _tool_format(config: Config) -> str:
    """Return how the model calls tools, if it does and is here; else the setting."""
    wanted, model = config.agent.tool_format, config.policy.model
    if config.agent.style != "tools" or wanted != "auto":
        return wanted
    if model in TINY_MODELS:
        return "hermes"
    from harness.model.loading import tokenizer_of

    try:
        template = str(tokenizer_of(model).chat_template)
    except ConfigError:  # a dry run says that the model is missing, and so does the start
        return wanted
    return tool_formats.choose(wanted, tool_formats.template_format(template))


def plays_initial(config: Config) -> bool:
    """Return whether the policy before training plays the rollouts."""
    return methods.get(config.method.name).actor == "initial" and config.rollout.is_live


def needs_reference(config: Config) -> bool:
    """Return whether a run needs the reference policy."""
    return (
        bool(loss_settings(config).get("kl_coefficient"))
        or plays_initial(config)
        or any(annotators.needs_reference(*item) for item in annotator_settings(config).items())
    )
