"""Results read back: evaluations, training runs, and the numbers that papers report.

Takes folders; returns evaluations in one form, named and grouped as tables need them.
"""
