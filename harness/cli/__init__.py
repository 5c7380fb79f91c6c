"""The command `harness`: train, gateway, eval, export, report, recipes, methods, credit.

Each command imports what it needs when it runs, so that `harness credit` needs no torch.
"""
