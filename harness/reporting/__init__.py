"""Tables, curves and pages of evaluations and training runs, beside the papers' numbers."""
