"""The audit of credit: the worth of each turn by executed continuations, compared with its credit.

`truth` measures the advantage of every turn by playing on from forks of its episode, with the
policies of `policies`; `truth_sets` are its files. `agreement` compares estimators with the truth,
`evidence` counts the turns behind each figure, `intervals` gives its error, `spread` compares over
fresh groups, `parts` by size of the groups, success and length.
"""
