"""Curves as pictures: success over training steps, and the metrics of a run."""
