"""Prompting-only agents: direct, ReAct and Reflexion, with training's loop, prompts and parsing.

- direct: the prompt asks for an action only (style `direct`).
- react: the prompt asks for a thought, then an action (style `think`, as in training), optionally
  after worked examples of the expert. Yao et al. 2022, arXiv:2210.03629.
- reflexion: react; after a failed episode the agent reflects and tries the task again, with the
  reflections before the prompt. Shinn et al. 2023, arXiv:2303.11366.
- best-of-n and mcts: react with a search at each task; see `harness.rollouts.search`.
"""

from harness.evaluation.baselines.prompted import Baseline
from harness.evaluation.baselines.reflexion import Reflection

__all__ = ["Baseline", "Reflection"]
