"""The audit of credit: the worth of each turn by executed continuations, compared with its credit.

`truth` plays on from forks of each episode, with the policies of `policies`; `truth_sets` are its
files. `agreement` compares estimators with the truth, `evidence` counts the turns behind a figure,
`intervals` gives its error.
"""
