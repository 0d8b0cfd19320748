"""Commands that last: progress, cancellation, time limits, and clients that go away."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from contextlib import suppress

import anyio
import pytest
from mcp.shared.exceptions import MCPError

from world import LEGACY, NOBODY_IS_ASKED, World, children, done, failed, running, text_of, until, wait_until

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def no_questions(world: World) -> None:
    world.configure(NOBODY_IS_ASKED)


def long_time() -> str:
    """A number of seconds that nobody else sleeps."""
    return f"8{random.randrange(10**6):06}.5"


def brood(seconds: str) -> dict[str, str]:
    """A command with a child in the foreground, one in the background, one in a session of its own and one of that one's."""
    sleep = f"sleep {seconds}"
    return {"command": f"{sleep} & setsid {sleep} & setsid sh -c '{sleep} & {sleep}' & {sleep}"}


BROOD = 5

# A command that lasts until there is a file `go` beside it.
UNTIL_GO = "until [ -e go ]; do sleep 0.05; done"


async def test_progress_of_a_long_command_arrives_while_it_runs(world: World, era: str) -> None:
    values: list[float] = []

    async def progress(value: float, _total: float | None, _message: str | None) -> None:
        values.append(value)
        if len(values) == 2:
            world.write("go", "")

    async with world.client(era) as client:
        result = done(
            await client.call_tool("shell", {"command": f"echo 1; {UNTIL_GO}; echo 2"}, progress_callback=progress)
        )
        assert result.structured_content["stdout"] == "1\n2\n"
    assert values == sorted(set(values)), f"progress does not increase: {values}"


async def test_cancelling_a_command_kills_all_that_it_started(world: World, era: str, backend: str) -> None:
    world.configure(NOBODY_IS_ASKED, backend)
    seconds = long_time()
    async with world.client(era) as client:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "shell", brood(seconds))
                assert await until(lambda: len(running(seconds)) >= BROOD), running(seconds)
                scope.cancel()
        assert await until(lambda: not running(seconds)), "cancelled, and still running"
        # The session goes on.
        done(await client.call_tool("shell", {"command": "echo alive"}))
        assert not running(seconds)


async def test_a_command_that_is_not_cancelled_runs_to_its_end(world: World, era: str, backend: str) -> None:
    world.configure(NOBODY_IS_ASKED, backend)
    async with world.client(era) as client:
        result = done(await client.call_tool("shell", {"command": "setsid sleep 1; sleep 1; echo over"}))
    assert "over" in text_of(result)


async def test_cancelling_one_call_leaves_the_others_alone(world: World, era: str) -> None:
    seconds = long_time()
    texts: list[str] = []
    async with world.client(era) as client:

        async def other() -> None:
            texts.append(text_of(done(await client.call_tool("shell", {"command": f"{UNTIL_GO}; echo other"}))))

        async with anyio.create_task_group() as group:
            group.start_soon(other)
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as doomed:
                    doomed.start_soon(client.call_tool, "shell", brood(seconds))
                    assert await until(lambda: len(running(seconds)) >= BROOD)
                    scope.cancel()
            assert await until(lambda: not running(seconds))
            assert not texts
            world.write("go", "")
    assert texts and "other" in texts[0]


async def test_a_read_timeout_of_the_client_kills_the_command(world: World, era: str) -> None:
    seconds = long_time()
    async with world.client(era) as client:
        with pytest.raises(Exception, match="(?i)time"):
            await client.call_tool("shell", {"command": f"sleep {seconds}"}, read_timeout_seconds=1)
        assert await until(lambda: not running(seconds))
        done(await client.call_tool("shell", {"command": "echo alive"}))


async def test_a_command_that_runs_out_of_time_is_killed_and_says_so(world: World, era: str) -> None:
    seconds = long_time()
    async with world.client(era) as client:
        text = failed(await client.call_tool("shell", {**brood(seconds), "timeout_seconds": 1}))
        assert "time" in text
        assert not running(seconds)
        done(await client.call_tool("shell", {"command": "sleep 0.2", "timeout_seconds": 200}))


async def test_what_a_command_left_in_the_background_ends_with_it(world: World, era: str) -> None:
    seconds = long_time()
    async with world.client(era) as client:
        done(await client.call_tool("shell", {"command": f"setsid sleep {seconds} & sleep 0.5; echo over"}))
        assert not running(seconds)


async def test_hanging_up_kills_what_runs_and_ends_the_server(world: World, era: str, backend: str) -> None:
    world.configure(NOBODY_IS_ASKED, backend)
    seconds = long_time()
    status = world.base / "status"
    # The shell beside it tells how the server ended.
    argv = ["sh", "-c", '"$@"; echo $? > "$0"', str(status), *world.argv()]
    async with anyio.create_task_group() as group:
        async with world.client(era, argv=argv) as client:

            async def call() -> None:
                with suppress(MCPError):
                    await client.call_tool("shell", brood(seconds))

            group.start_soon(call)
            assert await until(lambda: len(running(seconds)) >= BROOD)
    assert wait_until(lambda: not running(seconds))
    assert wait_until(lambda: status.exists() and status.read_text().endswith("\n"))
    assert status.read_text() == "0\n", "the server did not end by itself when its input did"


async def test_a_signal_kills_what_runs_and_ends_the_server(world: World, era: str) -> None:
    seconds = long_time()
    async with anyio.create_task_group() as group:
        async with world.client(era) as client:

            async def call() -> None:
                with suppress(MCPError):
                    failed(await client.call_tool("shell", brood(seconds)))

            group.start_soon(call)
            assert await until(lambda: len(running(seconds)) >= BROOD)
            os.kill(server(), signal.SIGTERM)
            assert await until(lambda: not running(seconds) and not servers())


CLIENT = """
import sys, anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main(mode, line, command, *arguments):
    server = StdioServerParameters(command=command, args=list(arguments), env={"TMPDIR": "@private@"})
    async with Client(stdio_client(server), mode=mode) as client:
        await client.call_tool("shell", {"command": line})

anyio.run(main, *sys.argv[1:])
"""


async def test_a_client_that_is_killed_leaves_nothing_running(world: World, era: str, backend: str) -> None:
    world.configure(NOBODY_IS_ASKED, backend)
    seconds = long_time()
    script = world.base / "client.py"
    script.write_text(CLIENT.replace("@private@", str(world.private)))
    mode = "legacy" if era == LEGACY else "auto"
    with world.stderr.open("a") as errors:
        process = subprocess.Popen(
            [sys.executable, str(script), mode, brood(seconds)["command"], *world.argv()], stderr=errors
        )
    try:
        assert await until(lambda: len(running(seconds)) >= BROOD), world.said()
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert await until(lambda: not running(seconds))


async def test_a_server_that_is_killed_leaves_nothing_running(world: World, era: str, backend: str) -> None:
    world.configure(NOBODY_IS_ASKED, backend)
    seconds = long_time()
    with pytest.raises(Exception):  # noqa: B017, PT011 - the connection is gone; how the SDK says so is its own business
        async with world.client(era) as client, anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "shell", brood(seconds))
            assert await until(lambda: len(running(seconds)) >= BROOD)
            os.kill(server(), signal.SIGKILL)
    assert wait_until(lambda: not running(seconds))


def servers() -> list[int]:
    """The servers that this process started and that have not ended."""
    return [pid for pid in running("mcp") if pid in children()]


def server() -> int:
    [pid] = servers()
    return pid


async def test_nothing_is_left_where_sessions_are_without_a_tmpdir(world: World, era: str, backend: str) -> None:
    world.configure(NOBODY_IS_ASKED, backend)
    # What is left there is looked for after each test.
    argv = ["env", "--unset=TMPDIR", *world.argv()]
    async with world.client(era, argv=argv) as client:
        done(await client.call_tool("shell", {"command": "echo x > $TMPDIR/litter; echo x > ~/litter"}))
        assert not list(world.private.iterdir())
