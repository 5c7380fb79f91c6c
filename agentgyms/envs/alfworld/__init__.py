"""ALFWorld: household tasks in text, played by this package's engine.

Takes commands such as `go to desk 1`; returns the texts of the official engine. `game` and `engine`
are the rules, `sources` finds games, `generated` makes them, `official` runs the official engine.
"""
