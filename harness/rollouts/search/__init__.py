"""Search: an agent tries several actions or episodes of a task, and keeps the best.

`preferences` are the pairs of a better and a worse answer that a search finds.
"""
