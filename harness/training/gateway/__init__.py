"""The gateway: outside agents play, and the policy in training answers them over HTTP.

Takes requests of OpenAI's or Anthropic's protocol, each of one rollout; returns answers, and whole
groups of rollouts with the tokens that the policy read and sampled.
"""
