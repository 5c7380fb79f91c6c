"""Chat templates, which come with other people's models.

`rendering` writes chats with a template, `arguments` checks its arguments, `clock` fixes
its date, `limit` bounds its time, `special_tokens` separates words of an answer from tokens that
end or begin messages.
"""
