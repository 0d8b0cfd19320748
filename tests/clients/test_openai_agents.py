"""The OpenAI Agents SDK: it answers no questions of a server, so what needs a yes is denied."""

from __future__ import annotations

import pytest
from agents.mcp import MCPServerStdio

from world import PATIENCE, World, done, failed, text_of

pytestmark = pytest.mark.anyio


def server(world: World) -> MCPServerStdio:
    command, *arguments = world.argv()
    parameters = {"command": command, "args": arguments, "env": world.environment(), "cwd": str(world.base)}
    return MCPServerStdio(parameters, client_session_timeout_seconds=PATIENCE)


async def test_tools_are_listed_and_called(world: World) -> None:
    async with server(world) as stockade:
        tools = {tool.name for tool in await stockade.list_tools()}
        assert {"read_file", "edit_file", "shell", "count"} <= tools
        assert "two" in text_of(done(await stockade.call_tool("read_file", {"path": "readme.txt"})))
        assert "hello" in text_of(done(await stockade.call_tool("shell", {"command": "echo hello"})))


async def test_what_needs_a_yes_is_denied_and_the_rule_is_named(world: World) -> None:
    async with server(world) as stockade:
        text = failed(await stockade.call_tool("write_file", {"path": "new.txt", "content": "x\n"}))
        assert "permission denied" in text and "needs a yes" in text
        done(await stockade.call_tool("write_file", {"path": "notes/new.txt", "content": "x\n"}))
    assert world.has("notes/new.txt") and not world.has("new.txt")
