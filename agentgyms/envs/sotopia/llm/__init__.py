"""Partners and judges that are models behind a server.

Takes the history of a dialogue; returns an action (a partner) or ratings (a judge), parsed from the
model's JSON and requested once more if they cannot be used.
"""
