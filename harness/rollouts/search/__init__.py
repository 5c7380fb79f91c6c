"""Search: an agent tries several actions or episodes of a task, and keeps the best."""
