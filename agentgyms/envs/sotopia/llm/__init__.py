"""Partners and judges that are models: a dialogue's history becomes an action, or ratings."""
