"""Tables of results: Markdown, LaTeX and CSV.

Takes loaded results; returns text. `rows` builds a table, `columns` has each environment's columns,
`formats` writes it, `details` has one evaluation in full and pairs, `sweeps` swept settings.
"""
