"""Recorded rollouts in, every method's advantages out, side by side. No model is needed.

`recordings.py` reads, `comparing.py` computes, `figures.py` says what the methods saw, `text.py`
and `page.py` show it.
"""
