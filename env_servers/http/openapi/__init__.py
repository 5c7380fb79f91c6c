"""The OpenAPI document, made from the messages' fields and a table of routes.

Takes nothing; `document` returns the document that `/openapi.json` serves.
"""
