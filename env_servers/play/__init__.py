"""`/play`: one page for every environment, on which a person plays and recordings are replayed.

The page is HTML, a style sheet and modules of JavaScript, which use the same routes as every other
client and know no environment by name.
"""
