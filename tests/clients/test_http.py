"""The Python SDK's client over HTTP: what holds over standard input and output holds there too."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from people import Gate, Person, decline, deny, for_the_session, once
from test_long_commands import BROOD, UNTIL_GO, brood, long_time
from world import NOBODY_IS_ASKED, World, done, failed, running, text_of, until

pytestmark = pytest.mark.anyio

CHANGE = {"path": "readme.txt", "edits": [{"old": "two", "new": "2"}]}
BEFORE, AFTER = "one\ntwo\nthree\n", "one\n2\nthree\n"


async def test_tools_are_the_same_as_over_standard_input_and_output(world: World, era: str) -> None:
    async with world.client(era) as client:
        expected = (await client.list_tools()).tools
    async with world.served() as server, server.client(era) as client:
        assert (await client.list_tools()).tools == expected


async def test_without_the_token_nothing_is_told(world: World, era: str) -> None:
    async with world.served() as server:
        for token in ("", "x", server.token[:-1], server.token + "x"):
            with pytest.raises(Exception):  # noqa: B017, PT011 - each version of the SDK says it in its own way
                async with replace(server, token=token).client(era) as client:
                    await client.list_tools()
        async with server.client(era) as client:
            done(await client.call_tool("read_file", {"path": "readme.txt"}))
        assert server.token not in world.said()


async def test_files_and_commands_are_what_the_config_lets_them_be(world: World, era: str) -> None:
    async with world.served() as server, server.client(era) as client:
        assert "two" in text_of(done(await client.call_tool("read_file", {"path": "readme.txt"})))
        assert "hello" in text_of(done(await client.call_tool("shell", {"command": "echo hello"})))
        assert "outside/secret" in failed(await client.call_tool("read_file", {"path": "../outside/secret"}))
        # This client shows no forms.
        assert "needs a yes" in failed(await client.call_tool("edit_file", CHANGE))
        done(await client.call_tool("write_file", {"path": "notes:new.txt", "content": "x"}))
    assert world.read("readme.txt") == BEFORE
    assert world.has("notes/new.txt")


async def test_a_yes_changes_the_file_and_a_no_does_not(world: World, era: str) -> None:
    async with world.served() as server, server.client(era, person := Person(deny("later"), decline, once)) as client:
        assert "later" in failed(await client.call_tool("edit_file", CHANGE))
        assert "denied" in failed(await client.call_tool("edit_file", CHANGE))
        assert world.read("readme.txt") == BEFORE
        done(await client.call_tool("edit_file", CHANGE))
    assert world.read("readme.txt") == AFTER
    person.was_asked(3)
    assert "-two" in person.asked[0].message


async def test_for_the_session_is_for_exactly_this(world: World, era: str) -> None:
    async with world.served() as server, server.client(era, person := Person(for_the_session, deny())) as client:
        for _ in range(2):
            done(await client.call_tool("shell", {"command": "touch new.txt"}))
            (world.work / "new.txt").unlink()
        failed(await client.call_tool("shell", {"command": "touch other.txt"}))
    person.was_asked(2)
    assert not world.has("other.txt")


async def test_each_of_two_clients_is_asked_about_its_own_calls(world: World, era: str) -> None:
    gate = Gate(once)
    yes, no = Person(gate), Person(deny("not mine"))
    async with world.served() as server, server.client(era, yes) as one, server.client(era, no) as two:

        async def write() -> None:
            done(await one.call_tool("write_file", {"path": "one.txt", "content": "x"}))

        async with anyio.create_task_group() as group:
            group.start_soon(write)
            await gate.reached.wait()
            assert "not mine" in failed(await two.call_tool("write_file", {"path": "two.txt", "content": "x"}))
            gate.open.set()
    yes.was_asked(1)
    no.was_asked(1)
    assert world.has("one.txt") and not world.has("two.txt")


async def test_progress_of_a_long_command_arrives_while_it_runs(world: World, era: str) -> None:
    world.configure(NOBODY_IS_ASKED)

    async def progress(_value: float, _total: float | None, _message: str | None) -> None:
        world.write("go", "")

    async with world.served() as server, server.client(era) as client:
        done(await client.call_tool("shell", {"command": UNTIL_GO}, progress_callback=progress))


async def test_cancelling_a_command_kills_all_that_it_started(world: World, era: str) -> None:
    world.configure(NOBODY_IS_ASKED)
    seconds = long_time()
    async with world.served() as server, server.client(era) as client:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "shell", brood(seconds))
                assert await until(lambda: len(running(seconds)) >= BROOD)
                scope.cancel()
        assert await until(lambda: not running(seconds)), "cancelled, and still running"
        done(await client.call_tool("shell", {"command": "echo alive"}))


async def test_a_client_that_goes_takes_its_commands_along(world: World, era: str) -> None:
    world.configure(NOBODY_IS_ASKED)
    seconds, others = long_time(), long_time()

    async def call(client: Client, arguments: dict[str, str]) -> None:
        with suppress(MCPError):
            await client.call_tool("shell", arguments)

    async with world.served("--drain", "1s") as server, anyio.create_task_group() as group, server.client(era) as stays:
        group.start_soon(call, stays, {"command": f"sleep {others}"})
        async with server.client(era) as goes:
            group.start_soon(call, goes, brood(seconds))
            assert await until(lambda: len(running(seconds)) >= BROOD and len(running(others)) == 1)
        # In the older era it is the end of the client's session that ends its calls, and they have a few seconds to answer.
        assert await until(lambda: not running(seconds))
        # What others started stays.
        assert len(running(others)) == 1
