"""pydantic-ai through its MCP toolset: a scripted model repairs a program, is denied something, and adjusts."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from fastmcp.client import Client as FastClient
from fastmcp.client.transports import ClientTransport, StdioTransport, StreamableHttpTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from people import Person, deny, once
from world import LEGACY, MODES, World

pytestmark = pytest.mark.anyio

PROGRAM = "def add(a, b):\n    return a - b\n"
TESTS = """
import unittest
from calc import add

class Add(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(2, 3), 5)

unittest.main()
"""
RUN_TESTS = ("shell", {"command": "python3 -B tests.py"})


class Script:
    """A model that does one thing after the other, each with an eye on what came of the last."""

    def __init__(self, *steps: Callable[[str, bool], tuple[str, dict[str, Any]] | str]) -> None:
        self.steps = list(steps)
        self.offered: set[str] = set()

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.offered = {tool.name for tool in info.function_tools}
        last = messages[-1].parts[-1]
        text, went_wrong = "", False
        if isinstance(last, ToolReturnPart):
            text, went_wrong = last.model_response_str(), last.outcome != "success"
        step = self.steps.pop(0)(text, went_wrong)
        if isinstance(step, str):
            return ModelResponse(parts=[TextPart(step)])
        return ModelResponse(parts=[ToolCallPart(*step)])


def over_stdio(world: World) -> ClientTransport:
    command, *arguments = world.argv()
    return StdioTransport(
        command,
        arguments,
        env=world.environment(),
        cwd=str(world.base),
        keep_alive=False,
        log_file=world.stderr,
    )


async def play(transport: ClientTransport, era: str, person: Person | None, script: Script) -> str:
    async def handler(_message: str, _type: Any, question: Any, _context: Any) -> Any:
        return await person.answer(question)

    asks = handler if person else None
    if era == LEGACY:
        toolset = MCPToolset(FastClient(transport, mode=MODES[era], elicitation_handler=asks))
    else:
        toolset = MCPToolset(transport, elicitation_handler=asks)
    agent = Agent(FunctionModel(script), toolsets=[toolset], retries=3)
    with warnings.catch_warnings():
        # pydantic-ai says of the new era that the handler "will never be called"; it is.
        warnings.filterwarnings("ignore", message=".*will never be called.*")
        async with agent:
            return (await agent.run("Repair calc.py")).output


async def repairs_and_adjusts(world: World, era: str, transport: ClientTransport) -> None:
    world.write("calc.py", PROGRAM)
    world.write("tests.py", TESTS)
    person = Person(once, deny("put it into notes/"))

    def start(_text: str, _wrong: bool):
        return RUN_TESTS

    def look(text: str, wrong: bool):
        assert wrong and "-1 != 5" in text
        return "read_file", {"path": "calc.py"}

    def repair(text: str, wrong: bool):
        assert not wrong and "a - b" in text
        return "edit_file", {"path": "calc.py", "edits": [{"old": "a - b", "new": "a + b"}]}

    def test_again(_text: str, wrong: bool):
        assert not wrong
        return RUN_TESTS

    def report(text: str, wrong: bool):
        assert not wrong and "OK" in text
        return "write_file", {"path": "report.txt", "content": "repaired\n"}

    def adjust(text: str, wrong: bool):
        assert wrong and "denied" in text and "put it into notes/" in text
        return "write_file", {"path": "notes/report.txt", "content": "repaired\n"}

    def finish(_text: str, wrong: bool):
        assert not wrong
        return "done"

    script = Script(start, look, repair, test_again, report, adjust, finish)
    assert await play(transport, era, person, script) == "done"
    assert {"read_file", "edit_file", "shell", "count"} <= script.offered
    person.was_asked(2)
    assert world.read("calc.py") == PROGRAM.replace("-", "+")
    assert world.read("notes/report.txt") == "repaired\n"
    assert not world.has("report.txt")


async def test_a_model_repairs_a_program_is_denied_something_and_adjusts(world: World, era: str) -> None:
    await repairs_and_adjusts(world, era, over_stdio(world))


async def test_a_model_does_the_same_over_http(world: World, era: str) -> None:
    async with world.served() as server:
        headers = {"Authorization": f"Bearer {server.token}"}
        await repairs_and_adjusts(world, era, StreamableHttpTransport(server.url, headers=headers))


async def test_a_model_reads_the_rule_when_there_is_nobody_to_ask(world: World, era: str) -> None:
    def first(_text: str, _wrong: bool):
        return "write_file", {"path": "new.txt", "content": "x\n"}

    def second(text: str, wrong: bool):
        assert wrong and "permission denied" in text and "needs a yes" in text
        return "write_file", {"path": "notes:new.txt", "content": "x\n"}

    def third(_text: str, wrong: bool):
        assert not wrong
        return "done"

    assert await play(over_stdio(world), era, None, Script(first, second, third)) == "done"
    assert world.has("notes/new.txt") and not world.has("new.txt")


async def test_a_model_that_asks_for_what_there_is_not_is_told_so(world: World, era: str) -> None:
    def first(_text: str, _wrong: bool):
        return "read_file", {"path": "../outside/secret"}

    def second(text: str, wrong: bool):
        assert wrong and "outside/secret" in text and "not yours" not in text
        return "read_file", {"path": "readme.txt"}

    def third(text: str, wrong: bool):
        assert not wrong and "two" in text
        return "done"

    assert await play(over_stdio(world), era, None, Script(first, second, third)) == "done"
