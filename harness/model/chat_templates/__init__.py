"""Chat templates, which come with other people's models.

`rendering` writes chats in a `child` `process` with limits; this project's are `trusted`. `probes`
finds the text around an answer, `special_tokens` tells words from tokens that end messages.
"""
