"""Trains and evaluates language agents on agentgyms environments."""
