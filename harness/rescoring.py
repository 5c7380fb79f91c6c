"""Old log-probabilities of the policy itself, and how far the generator's are from them.

Where another engine generates, its probabilities are not quite the policy's: it rounds differently,
and fuses what transformers does one by one. The update compares the policy with the policy that
played, so its log-probabilities are computed again before the update, by the code that trains. The
rollouts on disk keep the generator's.

What remains is that tokens were drawn from another distribution than the one the update assumes.
Truncated importance sampling weighs each token by min(pi_old / pi_generator, C), which is
`rollout.mismatch_cap`. Reference: Yao et al. 2025, "Your Efficient RL Framework Secretly Brings You
Off-Policy RL Training". The weight multiplies the token's advantage, which for every loss that is
linear in the advantage is the paper's; it is not differentiated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from harness import methods
from harness.config import Config
from harness.credit.table import Floats
from harness.packing import samples
from harness.policy import Policy
from harness.rollout import Rollout, Turn
from harness.scoring import score

_FAR: Final = 0.1
"""Nats: a token is far off if its probabilities differ by more than a factor of e^0.1, or 10 %."""


@dataclass(frozen=True, slots=True, eq=False)
class Rescored:
    """Rollouts as the update sees them.

    Attributes:
        rollouts: With the policy's log-probabilities.
        weight: Of each turn's tokens, or None where tokens are not weighed.
        figures: To log, under `mismatch/`.
    """

    rollouts: list[Rollout]
    weight: list[Floats] | None = None
    figures: dict[str, float] = field(default_factory=dict)

    def weigh(self, advantage: Floats | list[Floats]) -> Floats | list[Floats]:
        """Return the advantages of turns, or of their tokens, times the tokens' weights."""
        if self.weight is None:
            return advantage
        return [a * w for a, w in zip(advantage, self.weight, strict=True)]


def recomputes(config: Config) -> bool:
    """Return whether a run computes old log-probabilities under the policy.

    It does by default where another engine generates; never where the policy did not play, for then
    no loss reads them.
    """
    if methods.get(config.method.name).actor != "policy":
        return False
    wanted = config.rollout.old_logprobs
    return wanted == "recompute" or (wanted is None and config.rollout.backend != "hf")


def rescore(config: Config, policy: Policy, rollouts: list[Rollout]) -> Rescored:
    """Return a step's rollouts with the log-probabilities that the update compares with.

    Args:
        config: The run, resolved.
        policy: As it played them.
        rollouts: Those without errors that have a turn; they are not changed.
    """
    if not recomputes(config):
        return Rescored(rollouts)
    turns = [turn for rollout in rollouts for turn in rollout.turns]
    rows = samples(rollouts, np.zeros(len(turns)), config.agent.context)
    told = score(policy, rows, config.agent.temperature, config.optimizer.micro_batch_tokens)
    own = np.concatenate([one.logprob for one in told])
    drawn = np.concatenate([np.asarray(turn.completion.logprobs) for turn in turns])
    ends = np.cumsum([len(turn.completion.logprobs) for turn in turns])[:-1]
    figures, weight = mismatch(own, drawn), None
    cap = config.rollout.mismatch_cap
    if cap is not None:
        ratio = np.exp(np.minimum(own - drawn, np.log(cap) + 1))  # no overflow
        whole = np.minimum(ratio, cap)
        weight = np.split(whole, ends)
        figures |= {
            "mismatch/weight": float(whole.mean()),
            "mismatch/capped_share": float((ratio > cap).mean()),
        }
    return Rescored(_with(rollouts, turns, np.split(own, ends)), weight, figures)


def _with(
    rollouts: Sequence[Rollout], turns: Sequence[Turn], logprobs: Sequence[Floats]
) -> list[Rollout]:
    """Return copies of rollouts whose turns have other log-probabilities."""
    changed = iter(
        replace(turn, completion=replace(turn.completion, logprobs=tuple(own.tolist())))
        for turn, own in zip(turns, logprobs, strict=True)
    )
    return [replace(one, turns=[next(changed) for _ in one.turns]) for one in rollouts]


def mismatch(own: Floats, drawn: Floats) -> dict[str, float]:
    """Return how far the distributions are apart that tokens were drawn from and are trained on.

    With d = log pi_old - log pi_generator of tokens that the generator drew, the divergence
    KL(pi_generator || pi_old) is estimated by the means of -d (k1) and of exp(d) - 1 - d (k3).
    Reference: Schulman 2020, "Approximating KL Divergence".

    Args:
        own: The policy's log-probabilities. Shape [A].
        drawn: The generator's. Shape [A].
    """
    d = own - drawn
    constant = own.std() == 0 or drawn.std() == 0
    return {
        "mismatch/kl_k1": float(-d.mean()),
        "mismatch/kl_k3": float((np.expm1(d) - d).mean()),
        "mismatch/difference": float(np.abs(d).mean()),
        "mismatch/difference_max": float(np.abs(d).max()),
        "mismatch/far_share": float((np.abs(d) > _FAR).mean()),
        "mismatch/correlation": 1.0 if constant else float(np.corrcoef(own, drawn)[0, 1]),
    }
