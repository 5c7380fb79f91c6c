"""The gateway: agents of others play, and the policy in training answers them over HTTP.

Takes requests of OpenAI's or Anthropic's protocol, each of one rollout; returns answers, and whole
groups of rollouts with the tokens that the policy read and drew. `chat_requests` reads requests,
`openai_replies` and `anthropic_messages` write replies, `answers` makes them of completions,
`token_memory` finds the tokens of earlier answers. `rollout_book` keeps open rollouts and groups,
`env_sessions` reads what the agent did on a server of environments, `turns_of_calls` joins both.
`web` has the routes, `server` the socket, `gateway` brings requests to the policy; `outside_agents`
is what a training run plays its steps with.
"""
