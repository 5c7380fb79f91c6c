"""The gateway: outside agents play, and the policy in training answers them over HTTP.

Takes requests of OpenAI's or Anthropic's protocol, each of one rollout; returns answers, and whole
groups of rollouts with the tokens that the policy read and sampled. `web` has the routes, `gateway`
brings requests to the policy, `rollout_book` keeps open rollouts and groups, `ended_rollouts` has
what checkpoints keep of them, `name_ledger` the names of rollouts that a kill cut off, and
`token_memory` finds the tokens of earlier answers. `env_sessions` reads the agent's episode from
the environment's server, and `turns_of_calls` makes turns of both.
"""
