"""Chooses the tasks of a training step."""
