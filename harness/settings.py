"""What a recipe comes to: the hyperparameters of credit and loss, nothing left to defaults."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harness import credit, losses, methods
from harness.config import Config
from harness.credit.registry import keywords, preset


def credit_settings(config: Config) -> dict[str, Any]:
    """Return the estimator's hyperparameters: defaults, preset, the method's row, the recipe.

    Raises:
        ConfigError: A name is unknown.
    """
    method = methods.get(config.method.name)
    chosen = {
        **preset(config.method.preset, method.estimator),
        **method.credit,
        **config.method.credit,
    }
    credit.check(method.estimator, chosen)
    return keywords(credit.get(method.estimator)) | chosen


def loss_settings(config: Config) -> dict[str, Any]:
    """Return the loss's hyperparameters: defaults, the method's row, the recipe.

    Raises:
        ConfigError: A name is unknown.
    """
    method = methods.get(config.method.name)
    chosen = {**method.loss_settings, **config.method.loss}
    losses.check(method.loss, chosen)
    return losses.hyperparameters(method.loss) | chosen


def resolve(config: Config) -> Config:
    """Return the configuration with every hyperparameter of credit and loss written out.

    A run keeps this one, so that it goes on unchanged when a default changes.

    Raises:
        ConfigError: A name is unknown.
    """
    method = replace(config.method, credit=credit_settings(config), loss=loss_settings(config))
    return replace(config, method=method)
