"""Partners and judges that are models behind a server.

Takes the history of a dialogue; returns an action (`partner`) or ratings (`judge`), parsed from the
model's JSON and requested once more if they cannot be used.
"""
