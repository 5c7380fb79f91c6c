"""What verl imports to know our episodes and our trainer, as a plug-in or by its environment."""

from harness.engines import verl_credit, verl_episodes

__all__ = ["verl_credit", "verl_episodes"]
