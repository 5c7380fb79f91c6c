"""A model's weights in files and in memory, and their moving average.

`tensor_files` lists what a folder's files hold, `strict_load` refuses weights that are not the
model's, `stored_weights` reads and writes them in parts, `adapter_file` reads adapters', and
`weight_average` averages weights in training. `usual_precision` chooses a model's precision, and
`packed_linear` keeps weights as a CPU's kernel reads them.
"""
