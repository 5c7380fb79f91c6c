"""The leaderboard: a static site of evaluations whose every score was replayed.

Takes a folder that holds folders of evaluations, which may be strangers'; returns a site.
`submissions` finds them, `verification` replays them, `protocol` says in what they depart from the
standard settings, `boards` makes tables, `site` writes the files.
"""
