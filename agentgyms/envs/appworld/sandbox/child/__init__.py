"""The code of child processes; the standard library alone, for AppWorld's own interpreter."""
