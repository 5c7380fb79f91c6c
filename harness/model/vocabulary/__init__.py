"""The embedding and the output layer: their size grows with the vocabulary.

`output_layer` computes log-probabilities in chunks, `own_head` logits with a model's scales and
caps. `harness.model.learning_mode` adds the gradients of both layers in place.
"""
