"""MiniAppWorld: this package's own apps, people and tasks, in pure Python."""
