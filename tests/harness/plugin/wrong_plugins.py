"""Plug-ins with mistakes."""

import numpy as np

HELLO = "hello"


def no_numbers(turns):
    return np.full(len(turns), np.nan)


def too_few(turns):
    return np.zeros(1)


def without_arguments():
    return np.zeros(4)


def half_a_reward(rollout):
    return [0.0]
