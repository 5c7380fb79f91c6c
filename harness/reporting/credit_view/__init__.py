"""Computes every method's advantages on recorded rollouts and shows them side by side."""
