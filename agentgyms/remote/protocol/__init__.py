"""The protocol between client and server.

Takes messages, which are dataclasses (`messages`), and spaces; returns JSON and back (`framing`).
`error_codes` is the one table between exceptions and the codes that are sent.
"""
