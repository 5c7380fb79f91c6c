"""The things of the game."""
