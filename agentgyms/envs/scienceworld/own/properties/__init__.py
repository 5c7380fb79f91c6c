"""The properties that objects have."""
