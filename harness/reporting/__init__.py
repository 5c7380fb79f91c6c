"""Tables, curves and pages of evaluations and training runs, with the papers' numbers."""
