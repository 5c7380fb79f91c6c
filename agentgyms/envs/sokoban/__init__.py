"""Sokoban: rooms of any size, their rules, generators, exact solver, text and pictures."""
