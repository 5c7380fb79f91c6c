"""Models behind any server that speaks OpenAI's chat completions.

`sync_client` answers messages in threads, `client` in coroutines; answers are cached by request.
"""
