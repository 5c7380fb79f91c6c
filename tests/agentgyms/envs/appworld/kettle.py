"""A task with one made-up app, for tests of executors that answer its calls themselves."""

from agentgyms.envs.appworld.world import Brief

BRIEF = Brief(
    "tea_1",
    "",
    {},
    "2024-02-29T08:30:15",
    1,
    {"kettle": ["boil", "fail", "odd"], "supervisor": ["complete_task"]},
)
