"""Computes every method's advantages on recorded rollouts and shows them side by side.

No model is needed. `recordings.py` reads rollouts, `compare.py` computes advantages, `figures.py`
prepares the data of the figures, `text.py` and `page.py` show the results.
"""
