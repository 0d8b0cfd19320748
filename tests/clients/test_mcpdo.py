"""`mcpdo`, the Inspector's command line for connections that stay: it does answer forms, in a later command."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from world import World, run

MODES = {"legacy": "legacy", "modern": "modern"}


class Mcpdo:
    """One connection of a daemon that belongs to this test alone."""

    def __init__(self, node: str, package: str, world: World, era: str) -> None:
        self.argv = [
            node,
            str(Path(package) / "node_modules/@modelcontextprotocol/inspector/clients/mcpdo/build/mcp-bin.js"),
        ]
        self.world = world
        self.environment = {
            "PATH": f"{Path(node).parent}:/usr/bin:/bin",
            "HOME": str(world.home),
            "TMPDIR": str(world.base),
            "MCP_INSPECTOR_DAEMON_DIR": str(world.base / "mcpdo"),
            "MCP_INSPECTOR_DAEMON_TOKEN": secrets.token_hex(16),
            "MCP_INSPECTOR_SECRET_STORE": "memory",
        }
        (world.base / "mcpdo").mkdir(mode=0o700)
        server = {
            "type": "stdio",
            "command": str(world.binary),
            "args": world.argv()[1:],
            "env": world.environment(),
            "protocolEra": MODES[era],
        }
        (world.base / "mcp.json").write_text(json.dumps({"mcpServers": {"stockade": server}}))
        self.say("connect", "stockade", "--config", str(world.base / "mcp.json"), "--elicit", "form", "--era", MODES[era])

    def say(self, *words: str) -> str:
        done = run([*self.argv, "--format", "json", *words], env=self.environment, cwd=self.world.base)
        assert done.returncode in {0, 5}, done.stderr + done.stdout
        return done.stdout

    def call(self, tool: str, **arguments: object) -> dict:
        words = [f"{name}:={json.dumps(value)}" for name, value in arguments.items()]
        return json.loads(self.say("@stockade", "tools/call", tool, *words))

    def respond(self, pending: dict, *words: str) -> dict:
        question = pending["elicitationPending"]
        assert question["mode"] == "form"
        return json.loads(self.say("@stockade", "elicitation/respond", question["elicitationId"], *words))


@pytest.fixture
def mcpdo(pytestconfig: pytest.Config, world: World, era: str) -> Iterator[Mcpdo]:
    it = Mcpdo(os.path.abspath(pytestconfig.getoption("--node")), pytestconfig.getoption("--inspector"), world, era)
    yield it
    it.say("daemon", "stop")


def test_a_yes_given_later_has_the_change_made(mcpdo: Mcpdo, world: World) -> None:
    assert "two" in json.dumps(mcpdo.call("read_file", path="readme.txt"))
    pending = mcpdo.call("write_file", path="new.txt", content="x\n")
    assert "write_file" in json.dumps(pending)
    assert not world.has("new.txt")
    mcpdo.respond(pending, "decision:=once")
    assert world.read("new.txt") == "x\n"


def test_a_no_given_later_has_it_left(mcpdo: Mcpdo, world: World) -> None:
    for answer in (["decision:=deny", "note:=not now"], ["--decline"], ["--cancel"]):
        pending = mcpdo.call("write_file", path="new.txt", content="x\n")
        text = json.dumps(mcpdo.respond(pending, *answer))
        assert "denied" in text, answer
        assert ("not now" in text) is ("note:=not now" in answer)
        assert not world.has("new.txt"), answer
