"""The rules of the shop as pure functions: a state and an action lead to a state and its page."""
