"""Serves ALFWorld's household tasks with OpenEnv's protocol.

In this folder's parent: python -m server.app
"""

import uvicorn

from agentgyms.adapters.openenv import openenv_app

app = openenv_app("agentgyms/ALFWorld-v0", split="valid_seen")


def main(host: str = "127.0.0.1", port: int = 8000) -> None:
    """Serve until Ctrl-C."""
    uvicorn.run(app, host=host, port=port)


if __name__ == "__main__":
    main()
