"""What tools/list says, in both eras."""

from __future__ import annotations

import json
import re

import pytest
from jsonschema import Draft202012Validator
from mcp_types import Tool

from world import CONFIG, LEGACY, MODERN, ROOTS, VERSIONS, World, run

pytestmark = pytest.mark.anyio

LOOKING = ["read_file", "list_files", "search_files"]
CHANGING = ["write_file", "edit_file", "patch_file", "make_directory", "move_file", "delete_file"]

READ_ONLY = """
extends: [system]
sandbox:
  paths: {project: {root: ./work, mode: ro}}
shell:
  default: {allowed: false}
"""

CONFIGS = {
    "everything": (CONFIG, [*LOOKING, *CHANGING, "shell", "count"]),
    "nothing that writes": (READ_ONLY, LOOKING),
    "no delete_file": (ROOTS + "tools: {delete_file: {approval: deny}}\n", [*LOOKING, *CHANGING[:-1], "shell"]),
    "nothing but the shell": ("extends: [system]\nshell: {default: {approval: none}}\n", ["shell"]),
}


async def listed(world: World, era: str) -> list[Tool]:
    async with world.client(era) as client:
        first = (await client.list_tools(cache_mode="bypass")).tools
        second = (await client.list_tools(cache_mode="bypass")).tools
        assert first == second
        return first


def names(tools: list[Tool]) -> list[str]:
    return [tool.name for tool in tools]


@pytest.mark.parametrize("config", CONFIGS)
async def test_the_tools_are_those_that_the_config_can_allow(world: World, era: str, config: str) -> None:
    text, expected = CONFIGS[config]
    world.configure(text)
    tools = names(await listed(world, era))
    assert sorted(tools) == sorted(expected)
    # As `stockade call` has it.
    called = run([world.binary, "call", "--json", "--quiet", *world.argv()[2:]], env=world.environment())
    assert tools == [tool["name"] for tool in json.loads(called.stdout)["tools"]], called.stderr


async def test_the_order_is_the_same_at_every_start_and_in_both_eras(world: World) -> None:
    lists = [await listed(world, era) for era in (LEGACY, LEGACY, MODERN, MODERN)]
    assert [names(tools) for tools in lists] == [names(lists[0])] * 4
    assert [tool.input_schema for tool in lists[0]] == [tool.input_schema for tool in lists[-1]]


async def test_a_client_that_takes_the_new_revision_for_granted_is_served(world: World) -> None:
    async with world.client(MODERN, mode=VERSIONS[MODERN]) as client:
        assert "read_file" in names((await client.list_tools()).tools)


async def test_each_tool_has_a_name_a_description_and_schemas_that_are_schemas(world: World, era: str) -> None:
    for tool in await listed(world, era):
        assert re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", tool.name)
        assert tool.description
        Draft202012Validator.check_schema(tool.input_schema)
        assert tool.input_schema["type"] == "object"
        assert tool.output_schema is not None, f"{tool.name} does not say what it returns"
        Draft202012Validator.check_schema(tool.output_schema)
        assert tool.output_schema["type"] == "object"


async def test_the_annotations_are_honest(world: World, era: str) -> None:
    for tool in await listed(world, era):
        hints = tool.annotations
        assert hints is not None, f"{tool.name} has no annotations"
        assert hints.read_only_hint is (tool.name in LOOKING), tool.name
        if tool.name in {"write_file", "edit_file", "patch_file", "move_file", "delete_file", "shell"}:
            assert hints.destructive_hint is True, tool.name
        if tool.name == "make_directory":
            assert hints.destructive_hint is False


async def test_the_server_says_who_it_is_and_what_it_can(world: World, era: str) -> None:
    async with world.client(era) as client:
        assert client.server_capabilities.tools is not None
        assert client.server_capabilities.prompts is None
        assert client.server_capabilities.resources is None
        assert client.server_info is not None
        assert client.server_info.name == "stockade"
    # What holds is said to whoever looks, and not on standard output.
    assert "network off" in world.said()
