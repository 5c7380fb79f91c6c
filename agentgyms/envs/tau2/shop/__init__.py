"""A generated shop: its database, its policy, its customers and its tasks."""
