"""Training in the engines of others: a recipe's episodes and credit inside verl."""
