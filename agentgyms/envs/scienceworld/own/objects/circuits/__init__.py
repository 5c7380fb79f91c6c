"""The parts of circuits."""
