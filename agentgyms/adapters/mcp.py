"""Serves any environment as tools of the Model Context Protocol (MCP): `agentgyms mcp ALFWorld`.

The tools are `reset`, `end_episode` and those of the environment, or `step`, which takes any
action. Requests over HTTP belong to no session, so each names its episode; over standard input one
is played at a time.
"""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import gymnasium as gym

from agentgyms.adapters.messages import image_urls, tools_of, turn_text
from agentgyms.core import imports
from agentgyms.core.errors import AgentGymsError, BadOption, BadRequest
from agentgyms.core.outcome import Observation, for_agents
from agentgyms.core.serialization import encode_info, encode_number
from agentgyms.core.tools import ANY_ACTION, BadCall, Tool, ToolCall, Tools
from agentgyms.processes.signals import run_until_signal
from agentgyms.recording import RecordEpisodes
from agentgyms.registration import full_id, make_text_env
from agentgyms.remote.begun_session import BegunSession
from agentgyms.serving.addresses import check_reach

try:
    import anyio
    from mcp import types
    from mcp.server import Server
    from mcp.server.stdio import stdio_server
    from mcp.server.transport_security import TransportSecuritySettings
except ModuleNotFoundError as e:
    raise ModuleNotFoundError(imports.missing("mcp", "mcp"), name=e.name) from e

MAX_EPISODES: Final = 64
"""Episodes open at once over HTTP; one more closes the one that was used least recently."""

META: Final = "agentgyms/turn"
"""Key of a result's `_meta`, which no model reads: episode, reward, ends, `info` without atoms."""

_STEP: Final = Tools(
    Tool("step", "Take an action.", "{action}", {"action": "The action in words."})
)
_END: Final = "end_episode"
_EPISODE: Final = {"type": "string", "description": "The episode, as `reset` named it."}
_RESET: Final[dict[str, Any]] = {
    "seed": {"type": "integer", "minimum": 0, "description": "Chooses the task and all chance."},
    "task_id": {"type": "string", "description": "The task to play."},
}


class _Episode:
    """An environment that one call at a time plays."""

    def __init__(self, name: str, env: gym.Env[Observation, str] | BegunSession) -> None:
        self.name, self.env, self.lock = name, env, threading.Lock()

    def close(self) -> None:
        with self.lock:
            self.env.close()


class Episodes:
    """The episodes that clients play, and the tools to play them.

    With `several`, each call names one of several episodes. The tools are the environment's if
    `native`, else `step`. Each episode is recorded in a file of the folder `record`. `kwargs` go to
    `gymnasium.make`; with `url` the environment is on a server. Raises `AgentGymsError` if it
    cannot be made, `OSError` if the folder cannot.
    """

    def __init__(
        self,
        env_id: str,
        *,
        several: bool = False,
        native: bool = True,
        record: Path | None = None,
        session: str = "",
        **kwargs: Any,
    ) -> None:
        self._env_id, self._kwargs, self._record = env_id, kwargs, record
        self._several, self._most = several, MAX_EPISODES if several else 1
        self._open: OrderedDict[str, _Episode] = OrderedDict()
        self._lock = threading.Lock()
        self._begun = bool(session)
        tools = self._begun_tools(session) if session else tools_of(env_id, kwargs)
        if record is not None:
            record.mkdir(parents=True, exist_ok=True)
        self._actions = tools if native else _STEP
        taken = {tool.name for tool in self._actions} & {"reset", _END}
        if taken:
            raise BadOption(f"{env_id} has a tool of its own named {min(taken)}: give --text")

    def _begun_tools(self, session: str) -> Tools:
        """Open the episode of a session, and return its environment's tools."""
        if self._several or self._record or self._kwargs:
            raise BadOption(
                "a session has its arguments, its recording and one episode already: leave out "
                "--set, --record and --http"
            )
        begun = BegunSession(full_id(self._env_id), session)
        self._open[""] = _Episode("", begun)
        return _STEP if begun.tools is ANY_ACTION else begun.tools

    def tools(self) -> list[types.Tool]:
        """Return the tools."""
        own = [
            self._episode_tool(o["name"], o["description"], o["parameters"])
            for o in (schema["function"] for schema in self._actions.schemas)
        ]
        if self._begun:
            return own
        return [
            _tool("reset", "Start an episode: returns its task and what you see.", _RESET),
            *own,
            self._episode_tool(_END, "Give up an episode.", {"properties": {}, "required": []}),
        ]

    def _episode_tool(self, name: str, words: str, parameters: Mapping[str, Any]) -> types.Tool:
        properties, required = parameters["properties"], parameters["required"]
        if self._several:
            properties, required = {"episode": _EPISODE, **properties}, ["episode", *required]
        return _tool(name, words, properties, required)

    def call(self, name: str, arguments: Mapping[str, Any]) -> types.CallToolResult:
        """Call a tool by name. A wrong call is explained in the result, and takes no turn."""
        try:
            if name == "reset" and not self._begun:
                return self._reset(**_known(arguments, _RESET))
            episode, rest = self._find(arguments)
            if name == _END and not self._begun:
                self._forget(episode)
                return types.CallToolResult(content=[_text("The episode has ended.")])
            return self._step(episode, self._actions.action(ToolCall(name, rest)))
        except (AgentGymsError, BadCall, gym.error.Error) as e:
            return types.CallToolResult(content=[_text(f"error: {e}")], is_error=True)

    def close(self) -> None:
        """Close all episodes."""
        for episode in list(self._open.values()):
            self._forget(episode)

    def _reset(self, seed: Any = None, task_id: Any = None) -> types.CallToolResult:
        if seed is not None and (type(seed) is not int or seed < 0):
            raise BadRequest(f"seed must be an integer of 0 or more, got {seed!r:.40}")
        name = uuid.uuid4().hex
        env = make_text_env(self._env_id, **self._kwargs)
        try:
            if self._record is not None:
                env = RecordEpisodes(env, self._record / f"{name}.jsonl", actor="mcp")
            options = {} if task_id is None else {"task_id": task_id}
            observation, info = env.reset(seed=seed, options=options)
        except BaseException:
            env.close()
            raise
        episode = _Episode(name, env)
        with self._lock:
            self._open[episode.name] = episode
            extra = [self._open.popitem(last=False)[1] for _ in range(len(self._open) - self._most)]
        for one in extra:
            one.close()
        named = {"episode": name} if self._several else {}
        return self._result(observation, info, named)

    def _step(self, episode: _Episode, action: str) -> types.CallToolResult:
        with episode.lock:
            observation, reward, terminated, truncated, info = episode.env.step(action)
        ends = {"terminated": terminated, "truncated": truncated}
        if terminated or truncated:
            self._forget(episode)
        return self._result(observation, info, {"reward": encode_number(float(reward)), **ends})

    def _result(
        self, observation: Observation, info: dict[str, Any], more: dict[str, Any]
    ) -> types.CallToolResult:
        over = bool(more.get("terminated") or more.get("truncated"))
        words = [turn_text(observation, info, self._actions.shown, over=over)]
        if "episode" in more:
            words.append(f"The episode is {more['episode']}")
        pictures = [
            types.ImageContent(type="image", data=url.partition(",")[2], mime_type="image/png")
            for url in image_urls(observation).values()
        ]
        told = {**more, "info": encode_info(for_agents(info))}
        return types.CallToolResult(
            content=[_text("\n\n".join(words)), *pictures], _meta={META: told}
        )

    def _find(self, arguments: Mapping[str, Any]) -> tuple[_Episode, dict[str, Any]]:
        """Return the episode that a call names, and the arguments beside the name."""
        rest = dict(arguments)
        with self._lock:
            name = rest.pop("episode", None) if self._several else next(iter(self._open), None)
            found = self._open.get(name) if isinstance(name, str) else None
            if found is None:
                named = f" {name!r:.40}" if self._several else ""
                remedy = "" if self._begun else ", or call `reset` first"
                raise BadRequest(f"no episode{named} is open: it ended{remedy}")
            self._open.move_to_end(found.name)
        return found, rest

    def _forget(self, episode: _Episode) -> None:
        with self._lock:
            self._open.pop(episode.name, None)
        episode.close()


def mcp_server(episodes: Episodes, name: str = "agentgyms") -> Server[Any]:
    """Return the server of the MCP package for some episodes."""

    async def tools(*_: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=episodes.tools())

    async def call(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        work = partial(episodes.call, params.name, params.arguments or {})
        return await anyio.to_thread.run_sync(work)

    return Server(name, on_list_tools=tools, on_call_tool=call)


def serve(env_id: str, **options: Any) -> None:
    """Serve `Episodes` by standard input and output until the client, or Ctrl-C, ends it."""
    episodes = Episodes(env_id, **options)
    server = mcp_server(episodes, full_id(env_id))
    run_until_signal(lambda: anyio.run(_by_standard_input, server), episodes.close)


def serve_at(
    env_id: str,
    address: tuple[str, int],
    *,
    token: str = "",
    hosts: Iterable[str] = (),
    **options: Any,
) -> None:
    """Serve an environment over HTTP, at `/mcp`, until a signal.

    Clients must send the `token`, unless it is ""; without one it answers at addresses, `localhost`
    and `hosts`. The `options` and the errors are those of `Episodes`. Also raises `AgentGymsError`
    if other machines could connect without a token.
    """
    from agentgyms.adapters import mcp_http

    check_reach(address[0], token, mcp_http.TOKEN_VARIABLE)
    episodes = Episodes(env_id, several=True, **options)
    try:
        checked_before = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        app = mcp_server(episodes, full_id(env_id)).streamable_http_app(
            json_response=True, stateless_http=True, transport_security=checked_before
        )
        mcp_http.serve_http(app, address, token, hosts)
    finally:
        episodes.close()


async def _by_standard_input(server: Server[Any]) -> None:
    async with stdio_server() as (received, sent):
        await server.run(received, sent, server.create_initialization_options())


def _tool(
    name: str, words: str, properties: Mapping[str, Any], required: list[str] | None = None
) -> types.Tool:
    schema = {"type": "object", "properties": properties, "required": required or []}
    return types.Tool(name=name, description=words, input_schema=schema)


def _text(words: str) -> types.TextContent:
    return types.TextContent(type="text", text=words)


def _known(arguments: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    for name in arguments:
        if name not in known:
            raise BadRequest(f"reset has no argument {name!r:.40}: expected {', '.join(known)}")
    return dict(arguments)
