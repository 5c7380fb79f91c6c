"""Models behind any server that speaks OpenAI's chat completions.

Takes messages and sampling settings; returns answers, cached by request (`sync_client` for threads,
`client` for coroutines). `rate_limit` retries and waits, `error_replies` reads refusals.
"""
