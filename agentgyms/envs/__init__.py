"""The environments, one folder each: `env.py` is the environment, `expert.py` its expert.

Takes a task and actions as text; returns the outcomes that `agentgyms.core` turns into
observations, rewards and `info`. `corridor.py` is the smallest one. No environment imports another
one.
"""
