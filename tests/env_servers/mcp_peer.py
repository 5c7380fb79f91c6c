"""Calls tools as MCP's own client does, of `agentgyms mcp` as a process or over HTTP.

Run as a script in a Python with the package mcp. Standard input is JSON: a list of servers, each
with the words of its `command` behind `agentgyms mcp`, its `url` if it is over HTTP, and the
`calls` to make; an argument "$episode" is replaced by the episode that the last reset named.
Standard output has for each its tools and results.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

COMMAND = [sys.executable, "-m", "agentgyms", "mcp"]


def wait_for(url, process):
    while process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5)
        except urllib.error.HTTPError:
            return  # it answers, though not to this
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise SystemExit(f"the server ended with {process.returncode}")


async def play(transport, calls, mode):
    episode, results = "", []
    async with Client(transport, mode=mode) as client:
        tools = [tool.model_dump(mode="json") for tool in (await client.list_tools()).tools]
        for name, arguments in calls:
            arguments = {k: episode if v == "$episode" else v for k, v in arguments.items()}
            result = await client.call_tool(name, arguments)
            told = (result.meta or {}).get("agentgyms/turn", {})
            episode = told.get("episode", episode)
            content = [block.model_dump(mode="json") for block in result.content]
            results.append({"content": content, "told": told, "error": result.is_error})
    return {"tools": tools, "results": results}


def played(asked):
    mode, command = asked.get("mode", "auto"), [*COMMAND, *asked["command"]]
    if "url" not in asked:
        process = StdioServerParameters(
            command=command[0], args=command[1:], env=dict(os.environ), cwd=asked["folder"]
        )
        return asyncio.run(play(stdio_client(process), asked["calls"], mode))
    process = subprocess.Popen(command, cwd=asked["folder"])
    try:
        wait_for(asked["url"], process)
        return asyncio.run(play(asked["url"], asked["calls"], mode))
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    sys.stdout.write(json.dumps([played(asked) for asked in json.load(sys.stdin)]))
