"""The goals of tasks, and how a game's progress through them is scored."""
