"""The house that every task starts in."""
