"""All products of a shop: stored on disk or generated, with what goals and search need of them.

Takes a folder, or nothing for the generated products; returns a `Catalogue`.
"""
