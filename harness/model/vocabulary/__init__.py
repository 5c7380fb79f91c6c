"""The embedding and the output layer: their size grows with the vocabulary."""
