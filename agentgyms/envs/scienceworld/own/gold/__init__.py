"""Helpers of the real engine's solutions: ways through the house, and how to call a thing."""
