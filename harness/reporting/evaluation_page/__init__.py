"""The HTML page of evaluations: figures, and every episode.

Takes loaded evaluations; returns one file that needs nothing else. `page/` is its template.
"""
