"""AppWorld: tasks that are solved by writing code against the APIs of everyday apps.

Takes Python code; returns its output, and a verdict at the end. `sandbox` runs the code, `mini` and
`engine` are the two worlds behind the APIs.
"""
