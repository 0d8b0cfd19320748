"""The MCP Inspector's command line. It declares no form, so what needs a yes is denied."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from world import LEGACY, World, run

ERAS = {LEGACY: "legacy", "modern": "modern"}


@pytest.fixture(scope="session")
def inspector(pytestconfig: pytest.Config) -> list[str]:
    node, package = pytestconfig.getoption("--node"), pytestconfig.getoption("--inspector")
    launcher = Path(package) / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
    assert launcher.exists(), f"{launcher} is missing; scripts/clients.sh installs it"
    return [node, str(launcher), "--cli"]


def inspect(inspector: list[str], world: World, era: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    server = {"type": "stdio", "command": str(world.binary), "args": world.argv()[1:], "env": world.environment()}
    config = world.base / "inspector.json"
    config.write_text(json.dumps({"mcpServers": {"stockade": server}}))
    return run(
        [
            *inspector,
            "--config",
            str(config),
            "--server",
            "stockade",
            "--protocol-era",
            ERAS[era],
            "--format",
            "json",
            *arguments,
        ],
        env={"PATH": "/usr/bin:/bin", "HOME": str(world.home), "TMPDIR": str(world.private)},
        cwd=world.base,
    )


def call(inspector: list[str], world: World, era: str, tool: str, **arguments: object) -> dict:
    argv = ["--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments)]
    done = inspect(inspector, world, era, *argv)
    assert done.stdout, done.stderr
    result = json.loads(done.stdout)["result"]
    # Its own word for a tool that said it went wrong.
    assert done.returncode == (5 if result.get("isError") else 0), done.stderr
    return result


def text_of(result: dict) -> str:
    return "\n".join(part["text"] for part in result["content"])


def test_the_tools_are_listed_and_their_schemas_are_portable(inspector: list[str], world: World, era: str) -> None:
    done = inspect(inspector, world, era, "--method", "tools/list", "--strict")
    assert done.returncode == 0, done.stderr
    tools = [tool["name"] for tool in json.loads(done.stdout)["result"]["tools"]]
    assert {"read_file", "edit_file", "shell", "count"} <= set(tools)


def test_a_file_is_read_and_a_command_is_run(inspector: list[str], world: World, era: str) -> None:
    result = call(inspector, world, era, "read_file", path="readme.txt")
    assert not result.get("isError") and "two" in text_of(result)
    result = call(inspector, world, era, "shell", command="echo hello")
    assert result["structuredContent"]["stdout"] == "hello\n"


def test_what_needs_a_yes_is_denied_and_the_rule_is_named(inspector: list[str], world: World, era: str) -> None:
    result = call(inspector, world, era, "write_file", path="new.txt", content="x\n")
    assert result["isError"]
    assert "permission denied" in text_of(result)
    assert "needs a yes" in text_of(result) and "stockade.yaml:7" in text_of(result)
    assert not world.has("new.txt")
    # The twin, where no yes is needed.
    result = call(inspector, world, era, "write_file", path="notes/new.txt", content="x\n")
    assert not result.get("isError"), result
    assert world.read("notes/new.txt") == "x\n"
