"""Plays an episode by the tools of `agentgyms mcp`, as agents do that start their servers.

pip install -e '.[mcp]'
python examples/clients/mcp_agent.py
"""

import asyncio
import os
import sys

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

COMMAND = StdioServerParameters(
    command=sys.executable,
    args=["-m", "agentgyms", "mcp", "Corridor"],
    env=dict(os.environ),  # else the server gets few variables, and not AGENTGYMS_DATA
)


async def main():
    """Walk to the door and open it; a model would choose among the tools."""
    async with Client(stdio_client(COMMAND)) as client:
        listed = await client.list_tools()
        print("tools:", ", ".join(tool.name for tool in listed.tools))
        result = await client.call_tool("reset", {"task_id": "train/free-000"})
        while True:
            text = result.content[0].text
            print(text)
            if "The episode is over" in text:
                break
            call = ("open_door", {}) if "at the door" in text else ("walk", {"direction": "right"})
            result = await client.call_tool(*call)


asyncio.run(main())
