"""The HTML page of evaluations: figures and every episode, in a file that needs nothing else."""
