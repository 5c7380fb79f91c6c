"""The OpenAPI document, from the messages' fields and a table of routes: `document` returns it."""
