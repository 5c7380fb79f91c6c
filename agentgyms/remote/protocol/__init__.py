"""The protocol: `messages`, their JSON (`framing`), and the codes of exceptions (`error_codes`)."""
