"""MiniAppWorld: this package's apps, people and tasks, in pure Python."""
