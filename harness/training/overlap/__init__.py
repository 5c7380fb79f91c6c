"""Rollouts of the next step, played in a thread while the policy learns from those of this step.

`AheadPlayer` takes the place of `harness.rollouts.player.Player`; `GroupStream` plays groups that
go on while the weights change (`rollout.ahead = "partial"`).
"""

from harness.training.overlap.player import AheadPlayer

__all__ = ["AheadPlayer"]
