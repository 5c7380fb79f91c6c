"""The embedding and the output layer, whose weights are as many as the vocabulary is large.

`output_layer` computes log-probabilities in chunks, `gradients` adds the gradients of both layers
to those of earlier micro-batches without a copy.
"""
