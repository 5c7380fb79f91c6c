"""Tables of results: Markdown, LaTeX and CSV."""
