"""Tries a method before a run: its reward, its estimator and its loss, on two small rollouts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import torch

from harness import annotators, credit, losses
from harness.annotators import semantic, state_values
from harness.config import Config, methods
from harness.credit import TurnTable, rewards
from harness.credit.registry import layers
from harness.losses import Metric
from harness.model.packing import TokenBatch
from harness.preflight.defaults import annotator_settings, credit_settings, loss_settings
from harness.rollouts.continuations import REWARDS
from harness.types.errors import ConfigError


def check_method(config: Config) -> None:
    """Raise `ConfigError` if a method's reward, estimator or loss fails on two small rollouts."""
    rewards.get(config.method.reward)
    _check_continuations(config)
    settings = _without_models(credit_settings(config))
    _check_tokens(config, settings)
    _try_estimator(config, settings)
    _try_loss(methods.get(config.method.name).loss, loss_settings(config))


def _check_continuations(config: Config) -> None:
    """Refuse rewards and rows for which continuations have no returns."""
    row = methods.get(config.method.name)
    if not state_values.wanted(annotator_settings(config)):
        return
    if config.method.reward not in REWARDS:
        raise ConfigError(
            f"method {row.name} plays continuations, whose return is {', '.join(REWARDS)}: got "
            f"method.reward {config.method.reward!r:.60}"
        )
    if (config.method.rows or row.rows) == "token":
        raise ConfigError(
            f"method {row.name} plays continuations, which begin at turns: set method.rows to "
            "'turn'"
        )


def _try_estimator(config: Config, settings: Mapping[str, Any]) -> None:
    method, table = methods.get(config.method.name), _two_rollouts(config)
    try:
        with_penalty = credit.get(method.estimator)(table, **settings)
        without = credit.get(method.estimator)(table, **_without_penalty(settings))
    except ConfigError:
        raise
    except Exception as e:  # a plug-in may raise anything
        raise ConfigError(
            f"method {method.name} cannot use its settings: {type(e).__name__}: {e}"
        ) from e
    found = np.asarray(with_penalty)
    if found.shape != (4,) or found.dtype.kind != "f" or not np.isfinite(found).all():
        raise ConfigError(
            f"estimator {method.estimator!r} must return finite numbers, one for each row; for 4 "
            f"rows it returned {found!r:.80}"
        )
    if settings != _without_penalty(settings) and np.array_equal(with_penalty, without):
        raise ConfigError(
            f"method {method.name} has a penalty of invalid actions that changes nothing: set "
            'method.credit.penalty_on to "row" or "return", or method.credit.invalid_penalty to 0'
        )


def _two_rollouts(config: Config) -> TurnTable:
    """Return two rollouts of two turns, one of which is invalid, with the annotators' columns."""
    filled = {
        name: [0.5] * 4
        for other in annotator_settings(config)
        for name in annotators.columns(other)
    }
    known = {field.name for field in dataclasses.fields(TurnTable)}
    atoms = [{"half": share} for share in (0.0, 1.0, 1.0, 0.0)]
    return TurnTable.from_columns(
        rollout=[0, 0, 1, 1],
        reward=[0.0, 0.0, 0.0, 1.0],
        valid=[True, False, True, True],
        state_key=["a", "b"] * 2,
        next_atoms=atoms,
        extra={name: column for name, column in filled.items() if name not in known},
        **{name: column for name, column in filled.items() if name in known},
    )


def _try_loss(name: str, settings: Mapping[str, Any]) -> None:
    mask = torch.tensor([[False, True, True, True]])
    logprob = torch.full((1, 4), -1.0, requires_grad=True)
    old = torch.full((1, 4), -1.0) * mask
    batch = TokenBatch(
        torch.zeros(1, 4, dtype=torch.long), mask, old, mask.float(), mask.long() - 1, old
    )
    optional = {"entropy": torch.ones(1, 4)} if settings.get("entropy_coefficient") else {}
    try:
        loss, metrics = losses.get(name)(
            logprob, batch, **settings, **optional, num_tokens=3, num_sequences=1
        )
        loss.backward()  # type: ignore[no-untyped-call]
    except ConfigError:
        raise
    except Exception as e:  # a plug-in may raise anything
        raise ConfigError(
            f"loss {name!r} must be a function (logprob, batch, *, its settings, num_tokens, "
            f"num_sequences) -> (loss, metrics): {type(e).__name__}: {e}"
        ) from e
    is_number = loss.shape == () and bool(torch.isfinite(loss))
    if not is_number or not all(isinstance(metric, Metric) for metric in metrics.values()):
        raise ConfigError(
            f"loss {name!r} must return a finite number and a dictionary of "
            f"harness.losses.Metric, got {loss!r:.80} and {metrics!r:.80}"
        )


def _without_penalty(settings: Mapping[str, Any]) -> dict[str, Any]:
    return _changed(settings, lambda key, value: 0.0 if key == "invalid_penalty" else value)


def _without_models(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return an estimator's settings with a scorer that needs no model in place of the others."""

    def plain(key: str, value: Any) -> Any:
        has_model = str(value).partition(":")[0] in semantic.DEFAULT_MODELS
        return "lexical" if key in ("scorer", "match") and has_model else value

    return _changed(settings, plain)


def _changed(settings: Mapping[str, Any], change: Callable[[str, Any], Any]) -> dict[str, Any]:
    return {
        key: _changed(value, change)
        if key == "base" and isinstance(value, Mapping)
        else change(key, value)
        for key, value in settings.items()
    }


_COMPARE_STATES: Final = (
    *("ecpo", "gigpo", "hgpo", "salt", "scpo"),
    *("g2po", "gagpo", "graft", "graphgpo", "milegpo", "pgpo", "proxmo", "rtmc"),
    *("dpo", "ipo", "kto"),
)
"""Estimators that compare turns in equal states; tokens of a turn would count as visits."""


def _check_tokens(config: Config, settings: Mapping[str, Any]) -> None:
    """Refuse token rows for estimators that compare states."""
    row = methods.get(config.method.name)
    if (config.method.rows or row.rows) != "token":
        return
    for name, _ in layers(row.estimator, settings):
        if name in _COMPARE_STATES:
            raise ConfigError(
                f"method.rows is 'token', but the estimator {name!r} compares turns in equal "
                "states: use 'turn'"
            )
