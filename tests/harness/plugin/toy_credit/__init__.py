"""A plug-in as people would write it: all that the harness takes from outside."""

from dataclasses import dataclass, replace

import gymnasium as gym
import numpy as np
import torch

from harness.annotators import register
from harness.config.methods import Method
from harness.config.methods import register as register_method
from harness.credit.registry import estimator
from harness.credit.rewards import reward
from harness.losses import Metric
from harness.losses.registry import loss


@estimator("toy_credit", needs=("surprise",))
def toy_credit(turns, *, weight: float = 1.0):
    """Return of the rollout less the batch's mean, and more where the policy was surprised."""
    returns = np.bincount(turns.rollout, weights=turns.reward)
    return (returns - returns.mean())[turns.rollout] + weight * turns.extra["surprise"]


def plain(turns):
    """An estimator that nobody has registered."""
    return turns.reward - turns.reward.mean()


@loss("toy_loss")
def toy_loss(logprob, batch, *, strength: float = 1.0, num_tokens=None, num_sequences=None):
    """REINFORCE without a clip."""
    mask = batch.action_mask
    value = -(batch.advantage * logprob).where(mask, 0.0).sum() * strength
    figures = {"toy": Metric(float(torch.count_nonzero(mask)))}
    return value / (num_tokens or int(mask.sum())), figures


@dataclass(frozen=True)
class SurpriseSettings:
    """Settings of `Surprise`."""

    scale: float = 1.0


@register("surprise", SurpriseSettings)
class Surprise:
    """Fills a column of its own: how unlikely the responses were."""

    columns = ("surprise",)

    def __init__(self, settings, context):
        self._scale = settings.scale
        self._steps = 0

    def annotate(self, turns, rollouts):
        said = [turn.completion.logprobs for rollout in rollouts for turn in rollout.turns]
        column = np.array([-self._scale * float(np.mean(values)) for values in said])
        return replace(turns, extra={"surprise": column})

    def learn(self, turns, rollouts, *, step, seed):
        self._steps += 1
        return {"surprise/steps": float(self._steps)}

    def state_dict(self):
        return {"steps": self._steps}

    def load_state_dict(self, state):
        self._steps = state["steps"]


@reward("toy_progress")
def toy_progress(rollout):
    """What each turn adds to the progress."""
    before = [0.0] + [turn.progress for turn in rollout.turns[:-1]]
    return [turn.progress - b for turn, b in zip(rollout.turns, before, strict=True)]


register_method(Method("toy", "toy_credit", "nobody 2030", loss="toy_loss"))

if "ToyCorridor-v0" not in gym.registry:
    corridor = gym.spec("agentgyms/Corridor-v0")
    gym.register("ToyCorridor-v0", corridor.entry_point, kwargs=corridor.kwargs)
