"""SOTOPIA's profiles, in a folder in one of three forms, as rows, encounters and splits."""
