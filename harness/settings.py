"""What a recipe comes to: the hyperparameters of credit and loss, nothing left to defaults."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from harness import credit, losses, methods
from harness.config import Config
from harness.credit.registry import hyperparameters_of, preset
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

    Raises:
        ConfigError: A name is unknown.
    """
    method = methods.get(config.method.name)
    chosen = {**method.loss_settings, **config.method.loss}
    losses.check(method.loss, chosen)
    return losses.hyperparameters(method.loss) | chosen


def annotator_settings(config: Config) -> dict[str, dict[str, Any]]:
    """Return the settings of each annotator that the method needs: its row's, then the recipe's.

    Raises:
        ConfigError: The recipe sets up an annotator that the method does not have, or gives
            something other than a section.
    """
    own = methods.get(config.method.name).annotators
    for name, values in config.method.annotators.items():
        if name not in own:
            known = ", ".join(own) or "none"
            raise ConfigError(
                f"method {config.method.name} has no annotator {name!r}: expected {known}"
            )
        if not isinstance(values, dict):
            raise ConfigError(f"method.annotators.{name} must be a section, got {values!r}")
    return {name: {**row, **config.method.annotators.get(name, {})} for name, row in own.items()}


_RUN_DEFAULTS: Final = {
    "rollout.dynamic_sampling": False,
    "rollout.enough_members": None,
    "rollout.enough_share": None,
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
    return replace(
        config,
        method=method,
        rollout=replace(config.rollout, **sections["rollout"]),
        optimizer=replace(config.optimizer, **sections["optimizer"]),
    )
