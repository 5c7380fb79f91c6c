"""The command `harness`: train, gateway, eval, export, report, recipes, methods, credit.

Takes arguments of the command line; prints text and returns an exit status. Each command imports
what it needs when it runs, so that `harness credit` needs no torch.
"""
