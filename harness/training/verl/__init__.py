"""Training in verl: a recipe's episodes and credit inside its trainer, on Ray."""
