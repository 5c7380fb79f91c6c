"""The properties that objects have."""

from agentgyms.envs.scienceworld.own.properties.container import *  # noqa: F403
from agentgyms.envs.scienceworld.own.properties.electrical import *  # noqa: F403
from agentgyms.envs.scienceworld.own.properties.material import *  # noqa: F403
from agentgyms.envs.scienceworld.own.properties.materials import *  # noqa: F403
from agentgyms.envs.scienceworld.own.properties.portal import *  # noqa: F403
from agentgyms.envs.scienceworld.own.properties.simple import *  # noqa: F403
