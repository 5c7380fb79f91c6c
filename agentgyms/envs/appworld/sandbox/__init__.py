"""Runs code that is not trusted in child processes, whose code is `child`."""
