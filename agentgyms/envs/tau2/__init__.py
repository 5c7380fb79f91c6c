"""Customer service in the form of tau2-bench (Barres et al. 2025, arXiv:2506.07982).

Takes what the agent says to a customer and the tools that it calls; returns the customer's answers
and the tools' results. The reward reads the database's end state and the facts told. `shop` is the
generated domain, `official` has the benchmark's own.
"""
