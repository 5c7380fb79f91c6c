"""Builds a stored catalogue, products, search index and goal arrays, from the official files."""
