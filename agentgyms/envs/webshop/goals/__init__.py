"""Goals and rewards: what to buy, and how well a purchase matches it.

Takes a catalogue and seeds; returns goals, splits and rewards.
"""
