"""What verl imports to know our episodes and our trainer, as a plug-in or by its environment."""

from harness.training.verl import credit, episodes

__all__ = ["credit", "episodes"]
