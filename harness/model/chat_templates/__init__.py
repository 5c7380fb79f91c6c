"""Chat templates, which come with other people's models.

`rendering` inspects a template, checks its arguments and writes chats, which `child` does in a
`process` of its own with limits; those of this project are `trusted` and need none. `clock` fixes
the date, `probes` finds the text around an answer, `special_tokens` separates words of an answer
from tokens that end or begin messages.
"""
