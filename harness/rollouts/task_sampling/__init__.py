"""Which tasks a training step plays: by their success so far, and more where nothing differs.

`curriculum` draws tasks that are too easy or too hard less often; `dynamic_sampling` replaces
groups whose returns are all equal.
"""
