"""The thirty tasks: what they add to the house, what they ask for, and their goals."""
