"""Old log-probabilities, recomputed by the policy, and their mismatch with the sampler's.

If another engine samples, its log-probabilities differ slightly from the policy's, because it
rounds differently and fuses operations. The update compares the policy with the old policy, so the
training code recomputes the old log-probabilities before the update. Rollouts on disk keep the
sampler's.

The tokens were still drawn from another distribution than the update assumes. `losses.mismatch`
has the corrections: importance weights of tokens, by pi_old / pi_sampler, multiply their
advantages, which equals the papers' losses if the loss is linear in the advantage; and rejection
leaves turns or sequences out. Without recomputed log-probabilities the update corrects, by the
policy that it changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import torch

from harness.config import Config, methods
from harness.config.rollout_settings import correction_of
from harness.losses import mismatch as corrections
from harness.losses.mismatch import UpdateCorrection
from harness.losses.surrogate import LARGEST_LOG
from harness.model.logprobs import score_tokens
from harness.model.packing import Sample, samples
from harness.model.policy import Policy
from harness.types.arrays import Floats
from harness.types.rollout import Rollout, Turn

_FAR: Final = 0.1
"""Nats; a token counts as far off if its log-probabilities differ by more (10 %)."""


@dataclass(frozen=True, slots=True, eq=False)
class RecomputedRollouts:
    """Rollouts with the log-probabilities that the update uses."""

    rollouts: list[Rollout]
    # Importance weights of each turn's tokens, or None without weights.
    weight: list[Floats] | None = None
    kept: list[bool] | None = None  # whether each answer of the turns is trained; None if all are
    figures: dict[str, float] = field(default_factory=dict)  # for the log, under `mismatch/`

    def weighted(self, advantage: Floats | list[Floats]) -> Floats | list[Floats]:
        """Return advantages of turns or tokens, multiplied by the tokens' importance weights."""
        assert self.weight is not None
        return [a * w for a, w in zip(advantage, self.weight, strict=True)]


def recomputes(config: Config) -> bool:
    """Return whether a run recomputes the old log-probabilities.

    By default it does if another engine samples, or older weights. It never does if the rollouts
    are not the policy's, because then no loss reads old log-probabilities.
    """
    wanted = config.rollout.old_logprobs
    other = config.rollout.backend != "hf" or bool(config.rollout.ahead)
    default = wanted is None and other
    return has_old_logprobs(config) and (wanted == "recompute" or default)


def has_old_logprobs(config: Config) -> bool:
    """Return whether the rollouts are the policy's, so that the loss may compare with them."""
    return methods.get(config.method.name).actor == "policy" and config.rollout.is_live


def corrects(config: Config) -> bool:
    """Return whether a run corrects the mismatch with the sampler."""
    return config.rollout.correction not in (None, "none")


def update_correction(config: Config) -> UpdateCorrection | None:
    """Return the correction in a run's updates; None if it has none, or corrects before them."""
    if recomputes(config) or not corrects(config):
        return None
    return UpdateCorrection(correction_of(config.rollout), config.method.loss.get("ratio", "token"))


def recompute_logprobs(
    config: Config, policy: Policy, rollouts: list[Rollout]
) -> RecomputedRollouts:
    """Return a step's rollouts with the old log-probabilities of the update; see `recomputes`.

    The policy has the weights that sampled the rollouts, or with `rollout.ahead` one step newer.
    The rollouts have no errors and a turn each; they are not changed.
    """
    turns = [turn for rollout in rollouts for turn in rollout.turns]
    rows = samples(rollouts, np.zeros(len(turns)), config.agent.context)
    recomputed = score_tokens(
        policy, rows, config.agent.temperature, config.optimizer.micro_batch_tokens
    )
    # [A] both: samples and turns have the same order
    own = np.concatenate([one.logprob for one in recomputed])
    sampled = np.concatenate([np.asarray(one.logprobs) for turn in turns for one in turn.answers])
    ends = np.cumsum([turn.num_sampled for turn in turns])[:-1]  # [N - 1]
    weight, kept, corrected = _correct(config, torch.from_numpy(own - sampled), turns, rows)
    return RecomputedRollouts(
        _with_logprobs(rollouts, turns, np.split(own, ends)),
        None if weight is None else np.split(weight, ends),
        kept,
        mismatch(own, sampled) | corrected,
    )


def _correct(
    config: Config, log_ratio: torch.Tensor, turns: Sequence[Turn], rows: Sequence[Sample]
) -> tuple[Floats | None, list[bool] | None, dict[str, float]]:
    """Return weights of tokens, kept answers and figures, by log pi_old - log pi_sampler, [A]."""
    correction, weight, kept = correction_of(config.rollout), None, None
    figures: dict[str, float] = {}
    if correction.cap is not None:
        ratio = log_ratio.clamp(-LARGEST_LOG, LARGEST_LOG).exp()
        weight = corrections.weights(ratio, correction).numpy()
        outside = corrections.out_of_bounds(ratio, correction)
        figures["mismatch/weight"] = float(weight.mean())
        figures["mismatch/capped_share"] = float(outside.double().mean())
    if correction.unit is not None:
        size = np.asarray([one.num_sampled for turn in turns for one in turn.answers])
        unit = np.arange(len(size))
        if correction.unit == "sequence":
            answers = [len({turn for turn in row.turn if turn >= 0}) or 1 for row in rows]
            unit = np.repeat(np.arange(len(rows)), answers)
        of_token = torch.from_numpy(np.repeat(unit, size))
        kept = corrections.kept(log_ratio, of_token, correction).numpy()[unit].tolist()
        figures["mismatch/rejected_share"] = 1 - float(size[kept].sum() / size.sum())
    return weight, kept, figures


def _with_logprobs(
    rollouts: Sequence[Rollout], turns: Sequence[Turn], logprobs: Sequence[Floats]
) -> list[Rollout]:
    changed = (_with_own(turn, own) for turn, own in zip(turns, logprobs, strict=True))
    return [replace(one, turns=[next(changed) for _ in one.turns]) for one in rollouts]


def _with_own(turn: Turn, logprobs: Floats) -> Turn:
    before = 0 if turn.summary is None else turn.summary.num_sampled
    own = replace(turn.completion, logprobs=tuple(logprobs[before:].tolist()))
    summary = turn.summary and replace(turn.summary, logprobs=tuple(logprobs[:before].tolist()))
    return replace(turn, completion=own, summary=summary)


def mismatch(own: Floats, sampled: Floats) -> dict[str, float]:
    """Return the sampler-trainer log-prob mismatch: KL, mean and maximum difference.

    With d = log pi_old - log pi_sampler of tokens that the sampler drew, the divergence
    KL(pi_sampler || pi_old) is estimated by the means of -d (k1) and of exp(d) - 1 - d (k3).
    Reference: Schulman 2020, "Approximating KL Divergence". `own` has the policy's
    log-probabilities, [A], and `sampled` the sampler's, [A].
    """
    d = own - sampled
    constant = own.std() == 0 or sampled.std() == 0
    return {
        "mismatch/kl_k1": float(-d.mean()),
        "mismatch/kl_k3": float((np.expm1(d) - d).mean()),
        "mismatch/difference": float(np.abs(d).mean()),
        "mismatch/difference_max": float(np.abs(d).max()),
        "mismatch/far_share": float((np.abs(d) > _FAR).mean()),
        "mismatch/correlation": 1.0 if constant else float(np.corrcoef(own, sampled)[0, 1]),
    }
