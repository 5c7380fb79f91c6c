"""What a recipe comes to: the hyperparameters of credit and loss, nothing left to defaults."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from harness import annotators, credit, losses, methods
from harness.config import Config
from harness.credit.registry import hyperparameters_of, layers, needs, preset
from harness.errors import ConfigError


def credit_settings(config: Config) -> dict[str, Any]:
    """Return the estimator's hyperparameters: defaults, preset, the method's row, the recipe.

    Raises:
        ConfigError: A name is unknown.
    """
    method = methods.get(config.method.name)
    own = {**method.credit, **config.method.credit}
    chosen = {**preset(config.method.preset, method.estimator, own), **own}
    credit.check(method.estimator, chosen)
    return hyperparameters_of(method.estimator, own) | chosen


def loss_settings(config: Config) -> dict[str, Any]:
    """Return the loss's hyperparameters: defaults, the method's row, the recipe.

    Where a policy loss sums over tokens and is divided by a constant (Dr. GRPO), that is the
    longest response that the run allows, as in its released code.

    Raises:
        ConfigError: A name is unknown.
    """
    method = methods.get(config.method.name)
    chosen = {**method.loss_settings, **config.method.loss}
    losses.check(method.loss, chosen)
    settings = losses.hyperparameters(method.loss) | chosen
    sums = settings.get("aggregation") == "sequence_mean_token_sum"
    if method.loss == "clipped" and sums and settings["constant"] is None:
        settings["constant"] = float(config.agent.max_tokens)
    return settings


def annotator_settings(config: Config) -> dict[str, dict[str, Any]]:
    """Return the annotators of a run with all their settings: defaults, the method's row, recipe.

    They are those that fill the columns its estimator reads: the method's own, and more where the
    recipe changes the estimator, as another `base` does.

    Raises:
        ConfigError: Nobody fills a column; or the recipe sets up an annotator that is not among
            them, gives something other than a section, or a setting that is unknown or out of
            range.
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
    """Return the names of the annotators that fill the columns a run's estimator reads."""
    method, settings = methods.get(config.method.name), credit_settings(config)
    asked = dict.fromkeys(needs(method.estimator, settings))
    own = layers(method.estimator, settings)
    if any(layer.get("kl_coefficient") for _, layer in own):  # REINFORCE++ reads it only then
        asked["kl"] = None
    preferred = [*method.annotators, *annotators.names()]
    chosen = []
    for column in asked:
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
    "optimizer.epochs": 1,
}
"""What a recipe may leave to its method, and what holds where the method is silent too."""


def resolve(config: Config) -> Config:
    """Return the configuration with everything written out that it leaves to its method.

    A run keeps this one, so that it goes on unchanged when a default changes.

    Raises:
        ConfigError: A name is unknown.
    """
    row = methods.get(config.method.name)
    method = replace(
        config.method,
        rows=config.method.rows or row.rows,
        annotators=annotator_settings(config),
        credit=credit_settings(config),
        loss=loss_settings(config),
    )
    sections: dict[str, dict[str, Any]] = {"rollout": {}, "optimizer": {}}
    for name, default in _RUN_DEFAULTS.items():
        section, key = name.split(".")
        if getattr(getattr(config, section), key) is None:
            sections[section][key] = row.run.get(name, default)
    own = sections["rollout"].get("enough_members")
    if own is not None:  # a method's 6 of 8 is at most all of a smaller group
        sections["rollout"]["enough_members"] = min(own, config.rollout.group_size)
    return replace(
        config,
        method=method,
        rollout=replace(config.rollout, **sections["rollout"]),
        optimizer=replace(config.optimizer, **sections["optimizer"]),
    )


def needs_reference(config: Config) -> bool:
    """Return whether a run has to keep the policy as it was before training.

    Raises:
        ConfigError: A name or a setting is unknown.
    """
    return (
        bool(loss_settings(config).get("kl_coefficient"))
        or methods.get(config.method.name).actor == "initial"
        or any(annotators.needs_reference(*item) for item in annotator_settings(config).items())
    )
