"""Chooses the tasks of a training step.

`curriculum` draws tasks that are too easy or too hard less often; `dynamic_sampling` replaces
groups whose returns are all equal.
"""
