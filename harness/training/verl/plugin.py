"""The module that verl imports to register our episodes and our trainer."""

from harness.training.verl import credit, episodes

__all__ = ["credit", "episodes"]
