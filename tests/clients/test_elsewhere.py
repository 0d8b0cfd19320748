"""Who answers in the client's place, and what a question may do to whoever reads it."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from people import Person, deny, once
from world import World, done, failed, run, text_of, until

pytestmark = pytest.mark.anyio

CHANGE = {"path": "readme.txt", "edits": [{"old": "two", "new": "2"}]}
BEFORE, AFTER = "one\ntwo\nthree\n", "one\n2\nthree\n"

PROGRAM = """#!/bin/sh
case $(cat) in
    *'"tool":"edit_file"'*) printf '{"approved": true}' ;;
    *) printf '{"approved": false, "note": "edits only"}' ;;
esac
"""


async def test_a_program_answers_in_place_of_the_client_and_its_no_is_final(world: World, era: str) -> None:
    program = world.base / "approver"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    async with world.client(era, person := Person(), "--approver-program", str(program)) as client:
        done(await client.call_tool("edit_file", CHANGE))
        text = failed(await client.call_tool("write_file", {"path": "new.txt", "content": "x"}))
        assert "permission denied" in text and "edits only" in text
    person.was_asked(0)
    assert world.read("readme.txt") == AFTER
    assert not world.has("new.txt")


def approvals(world: World, socket: Path, *words: str) -> str:
    told = run([world.binary, "approvals", "--socket", socket, *words], env=world.environment())
    assert told.returncode == 0, told.stderr
    return told.stdout


@pytest.fixture
def socket(world: World) -> Path:
    folder = world.base / "run"
    folder.mkdir(mode=0o700)
    return folder / "s"


async def test_somebody_at_the_socket_answers_in_place_of_the_client(world: World, era: str, socket: Path) -> None:
    async with world.client(era, person := Person(), "--approvals-socket", str(socket)) as client:
        for answer, content in (("approve", AFTER), ("deny", BEFORE)):
            world.write("readme.txt", BEFORE)
            results = []

            async def edit() -> None:
                results.append(await client.call_tool("edit_file", CHANGE))  # noqa: B023 - ends within the turn

            async with anyio.create_task_group() as group:
                group.start_soon(edit)
                assert await until(lambda: "edit_file" in approvals(world, socket, "list"))
                [number] = [line.split()[0] for line in approvals(world, socket, "list").splitlines()]
                assert "+2" in approvals(world, socket, "show", number)
                # A question that is open holds up nothing else.
                done(await client.call_tool("read_file", {"path": "readme.txt"}))
                approvals(world, socket, answer, number, "--note", "from elsewhere")
            assert world.read("readme.txt") == content
            assert results[0].is_error is (answer == "deny")
        assert "from elsewhere" in text_of(results[0])
    person.was_asked(0)


async def test_where_nobody_is_at_the_socket_the_client_is_not_asked_instead(
    world: World, era: str, socket: Path
) -> None:
    flags = ["--approvals-socket", str(socket), "--approval-timeout", "1s"]
    async with world.client(era, person := Person(), *flags) as client:
        assert "denied" in failed(await client.call_tool("edit_file", CHANGE))
        done(await client.call_tool("read_file", {"path": "readme.txt"}))
    person.was_asked(0)
    assert world.read("readme.txt") == BEFORE


async def test_the_channel_that_answered_is_told(world: World, era: str) -> None:
    async with world.client(era, person := Person(once, deny())) as client:
        done(await client.call_tool("edit_file", CHANGE))
        failed(await client.call_tool("write_file", {"path": "new.txt", "content": "x"}))
    person.was_asked(2)
    assert "edit_file: approved (elicitation)" in world.said()
    assert "write_file: denied (elicitation)" in world.said()


# What would move a terminal's cursor, hide text or turn it around.
TRICKS = {"escape": "\x1b[2K", "carriage return": "\r", "bidi": "\u202e", "invisible": "\u200b", "c1": "\x9b2K"}


async def test_a_question_shows_tricks_and_does_not_play_them(world: World, era: str) -> None:
    async with world.client(era, person := Person(always=deny())) as client:
        for trick in TRICKS.values():
            failed(await client.call_tool("shell", {"command": f"touch harmless{trick}"}))
            failed(await client.call_tool("write_file", {"path": f"a{trick}b.txt", "content": f"x{trick}y\n"}))
    for question in person.asked:
        for name, trick in TRICKS.items():
            assert trick[0] not in question.message, (name, question.message)
    assert len(person.asked) == 2 * len(TRICKS)


async def test_a_long_question_is_shown_whole_or_is_a_no(world: World, era: str) -> None:
    def content(lines: int) -> str:
        return "".join(f"line {number}\n" for number in range(lines))

    async with world.client(era, person := Person(once)) as client:
        done(await client.call_tool("write_file", {"path": "long.txt", "content": content(1_000)}))
        told = failed(await client.call_tool("write_file", {"path": "longer.txt", "content": content(10_000)}))
    person.was_asked(1)
    assert "line 999" in person.asked[0].message
    assert "could not be shown whole" in told
    assert world.read("long.txt") == content(1_000)


async def test_a_note_of_any_kind_reaches_the_model_as_text_of_modest_length(world: World, era: str) -> None:
    async with world.client(era, person := Person(deny("x" * 1_000_000), deny("\x1b[2Kno"), deny("fine"))) as client:
        assert len(failed(await client.call_tool("edit_file", CHANGE))) < 10_000
        assert "\x1b" not in failed(await client.call_tool("edit_file", CHANGE))
        assert "fine" in failed(await client.call_tool("edit_file", CHANGE))
    person.was_asked(3)
