"""Games small enough to be solved, one file each; `game`, `boards`, `pictures` are what they share.

A new game is a subclass of `game.Game` in a file of its own:

1. `words` are its commands, `deal` makes the board of a task (plain numbers, texts and tuples), and
   `start` the state in which it begins (the same, hashable; the board need not be in it).
2. `actions_in` and `transitions` are the rules, functions of a state: what an action may lead to,
   with probabilities. A game with chance sets `stochastic = True` and draws nothing itself.
3. `text` is what the agent reads, `is_state` refuses damaged snapshots, `goal` says the task.
   A game with pictures is a `pictures.PicturedGame`, with `caption` and `paint`.
4. Its id goes into `registration/ids.py`, a row into docs/games.md, and it gets prompts in
   `harness/prompts/templates`.

From these come tasks and splits, keys, feedback, progress, snapshots, redraws, the exact solution
(`agentgyms.exact`) and the expert that plays it. A game with too many states to list writes
`expert_actions` and `optimal_remaining` itself.
"""
