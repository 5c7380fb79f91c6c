"""The leaderboard: a static site of strangers' evaluations whose every score was replayed."""
