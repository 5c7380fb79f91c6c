"""A model's weights in files and in memory, and their moving average.

`tensor_files` lists what files hold, `strict_load` refuses weights that are not the model's,
`stored_weights` reads and writes them in parts, `weight_average` averages them in training.
"""
