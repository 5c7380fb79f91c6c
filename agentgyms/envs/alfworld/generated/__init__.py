"""Household tasks made by this package; `writer` exports them as official game files."""
