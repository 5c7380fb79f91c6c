"""The commands of an agent: their words, what they do, and which are possible."""
