"""Several sequences in one row.

`attention` keeps them apart, `prefix_tree` tells which tokens they share, `varlen_kernel` calls a
GPU's kernel, `split_row` splits a row over several processes.
"""
