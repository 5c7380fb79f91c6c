"""The profiles of SOTOPIA: their files, their rows, their encounters and splits.

Takes a folder of profiles in one of three forms; returns encounters.
"""
