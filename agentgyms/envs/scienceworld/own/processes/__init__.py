"""The laws of the game."""
