"""Builds a stored catalogue from the official files, and resumes after an interruption.

Takes WebShop's JSON files; writes products, search index and goal arrays.
"""
