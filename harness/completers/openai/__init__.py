"""Models behind any server that speaks OpenAI's chat completions: `completer.py` asks them.

A request goes through `requests.py` (its fields), `service.py` (its turn, and pauses) and
`replies.py` (what came back); `refusals.py` tells what may be tried again.
"""
