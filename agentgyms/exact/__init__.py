"""Exact values of small environments: the best policy's, any policy's, and its policy gradient.

`enumerate_states(env)` lists what can happen from the state in which an episode stands; `Model` has
the values. An environment can be enumerated if it is a `Dynamics`, as those of
`agentgyms.envs.games` are. Such truth has no error bars.
"""

from __future__ import annotations

from agentgyms.exact.dynamics import Dynamics, Solved, Transition, is_exact
from agentgyms.exact.model import Model, Reward, Values, enumerate_states

__all__ = [
    "Dynamics",
    "Model",
    "Reward",
    "Solved",
    "Transition",
    "Values",
    "enumerate_states",
    "is_exact",
]
