"""What training takes on one GPU, with random weights and without a network: `measure.py`."""
