"""Players: where the rollouts of a training step come from.

`Player` plays them. `AheadPlayer` plays those of the next step in a thread while the policy learns;
its `GroupStream` plays groups that go on while the weights change (`rollout.ahead = "partial"`).
`RecordedPlayer` reads files, `OutsideAgents` waits for agents at a gateway. All have the methods of
`Player`, which return `StepRollouts`.
"""
