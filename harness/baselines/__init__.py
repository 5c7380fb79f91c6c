"""Prompting-only agents: direct, ReAct and Reflexion, by the loop, prompts and parsing of training.

- direct: the action only, no thoughts asked for (style `direct`).
- react: a thought, then an action (style `think`, the one training uses), with worked examples of
  the expert in front if wanted. Yao et al. 2022, arXiv:2210.03629.
- reflexion: react; a failed episode is reflected on, and the task tried again with the reflections
  in front of the prompt. Shinn et al. 2023, arXiv:2303.11366.
"""

from harness.baselines.prompted import Baseline, make
from harness.baselines.reflexion import Reflection

__all__ = ["Baseline", "Reflection", "make"]
