"""Household tasks made by this package, and their export as official game files.

Takes the id of a task; returns its problem (`generator`, from `catalogue` and `layouts`). `writer`
writes files that the official engine plays.
"""
