"""AppWorld: tasks that are solved by writing code against the APIs of everyday apps.

`sandbox` runs the code, `mini` and `engine` are the two worlds behind the APIs.
"""
