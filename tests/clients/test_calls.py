"""What tools/call does, in both eras: what was done, what it returns, and what a model is told when it was not."""

from __future__ import annotations

import anyio
import pytest
from jsonschema import Draft202012Validator
from mcp.shared.exceptions import MCPError

from people import Person, once
from world import NOBODY_IS_ASKED, World, done, failed, text_of, until

pytestmark = pytest.mark.anyio

PATCH = "--- a/readme.txt\n+++ b/readme.txt\n@@ -1,3 +1,3 @@\n one\n-zwei\n+deux\n three\n"

# One call of each tool, in an order in which each can be carried out.
CALLS = [
    ("write_file", {"path": "new.txt", "content": "alpha\nbeta\n"}),
    ("read_file", {"path": "new.txt", "first_line": 2, "lines": 1}),
    ("edit_file", {"path": "readme.txt", "edits": [{"old": "two", "new": "zwei"}]}),
    ("patch_file", {"patch": PATCH}),
    ("list_files", {"glob": "**/*.txt"}),
    ("search_files", {"pattern": "al.ha"}),
    ("make_directory", {"path": "folder"}),
    ("move_file", {"from": "new.txt", "to": "folder/moved.txt"}),
    ("shell", {"argv": ["cat", "folder/moved.txt"]}),
    ("shell", {"command": "echo out; echo err >&2"}),
    ("count", {"path": "readme.txt"}),
    ("delete_file", {"path": "folder", "recursive": True}),
]


async def test_every_tool_returns_what_its_output_schema_promises(world: World, era: str) -> None:
    async with world.client(era, None, "--mode", "approve_all") as client:
        schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
        assert {name for name, _ in CALLS} == set(schemas)
        for name, arguments in CALLS:
            result = done(await client.call_tool(name, arguments))
            assert text_of(result).strip(), f"{name} says nothing to a model that reads text alone"
            Draft202012Validator(schemas[name]).validate(result.structured_content)
    assert world.read("readme.txt") == "one\ndeux\nthree\n"
    assert not world.has("folder")


async def test_a_file_is_read_without_a_question(world: World, era: str) -> None:
    async with world.client(era, person := Person()) as client:
        result = done(await client.call_tool("read_file", {"path": "readme.txt"}))
    assert "one\ntwo\nthree\n" in text_of(result)
    assert result.structured_content["content"] == "one\ntwo\nthree\n"
    person.was_asked(0)


async def test_a_file_is_written_and_edited_with_a_yes(world: World, era: str) -> None:
    async with world.client(era, person := Person(once, once)) as client:
        done(await client.call_tool("write_file", {"path": "new.txt", "content": "größer\n"}))
        done(await client.call_tool("edit_file", {"path": "readme.txt", "edits": [{"old": "two", "new": "2"}]}))
    assert world.read("new.txt") == "größer\n"
    assert world.read("readme.txt") == "one\n2\nthree\n"
    person.was_asked(2)


async def test_a_command_has_its_output_its_errors_and_its_code(world: World, era: str) -> None:
    async with world.client(era, person := Person()) as client:
        result = done(await client.call_tool("shell", {"command": "echo out; echo err >&2"}))
        assert result.structured_content["code"] == 0
        assert result.structured_content["stdout"] == "out\n"
        assert result.structured_content["stderr"] == "err\n"
        assert "out" in text_of(result) and "err" in text_of(result)

        result = await client.call_tool("shell", {"command": "echo before; cat missing"})
        assert result.structured_content["code"] == 1
        assert "before" in text_of(result) and "No such file" in text_of(result)
        assert result.is_error
    person.was_asked(0)


async def test_a_command_writes_where_the_config_lets_it_and_nowhere_else(world: World, era: str) -> None:
    write = 'import sys; open(sys.argv[1], "w").write("by a command")'
    async with world.client(era, person := Person()) as client:
        for name in ("notes/here", "there", str(world.outside / "there"), str(world.home / ".bashrc")):
            result = await client.call_tool("shell", {"argv": ["python3", "-B", "-c", write, name]})
            assert result.is_error is (name != "notes/here"), name
    assert world.read("notes/here") == "by a command"
    assert not world.has("there")
    assert not (world.outside / "there").exists() and not (world.home / ".bashrc").exists()
    person.was_asked(0)


# What goes wrong, and what a model must be able to read of it.
MISTAKES = {
    "an argument that there is not": ("read_file", {"path": "readme.txt", "encoding": "utf-8"}, ["encoding"]),
    "an argument that is missing": ("read_file", {}, ["path"]),
    "an argument of another type": ("read_file", {"path": "readme.txt", "lines": "all"}, ["read_file", "all"]),
    "a file that there is not": ("read_file", {"path": "raedme.txt"}, ["raedme.txt"]),
    "a file in no root": ("read_file", {"path": "../outside/secret"}, ["outside/secret"]),
    "text that is not in the file": (
        "edit_file",
        {"path": "readme.txt", "edits": [{"old": "four", "new": "4"}]},
        ["readme.txt"],
    ),
    "a patch that does not fit": ("patch_file", {"patch": PATCH.replace("one", "uno")}, ["readme.txt"]),
    "a pattern that cannot be read": ("search_files", {"pattern": "("}, ["("]),
    "a command that a rule blocks": ("shell", {"command": "rm readme.txt"}, ["blocked", "delete through delete_file"]),
    "a program that there is not": ("shell", {"argv": ["echoo", "x"]}, ["echoo"]),
    "neither a line nor a program": ("shell", {}, ["command", "argv"]),
}


async def test_what_went_wrong_is_an_error_that_a_model_can_act_on(world: World, era: str) -> None:
    async with world.client(era, None, "--mode", "approve_all") as client:
        for mistake, (name, arguments, words) in MISTAKES.items():
            text = failed(await client.call_tool(name, arguments))
            for word in words:
                assert word in text, mistake
            assert "not yours" not in text, mistake
            # The session goes on.
            assert "two" in text_of(done(await client.call_tool("read_file", {"path": "readme.txt"}))), mistake
    assert world.read("readme.txt") == "one\ntwo\nthree\n"


async def test_a_tool_that_there_is_not_is_an_error_that_names_it(world: World, era: str) -> None:
    async with world.client(era) as client:
        # To the protocol an unknown tool is a wrong request; to be told so in a result is as good.
        try:
            text = failed(await client.call_tool("read_everything", {"path": "readme.txt"}))
        except MCPError as refused:
            text = str(refused)
        assert "read_everything" in text
        done(await client.call_tool("read_file", {"path": "readme.txt"}))


async def test_text_of_every_kind_comes_back_as_it_was_sent(world: World, era: str) -> None:
    content = 'quotes " and \\ and </tool>\ttabs\n' + "\u2028\u202e\u0085 é 漢字 🧱\n" + "x" * 300_000 + "\nend\n"
    async with world.client(era, None, "--mode", "approve_all") as client:
        done(await client.call_tool("write_file", {"path": "notes/odd.txt", "content": content}))
        assert world.read("notes/odd.txt") == content
        result = done(await client.call_tool("read_file", {"path": "notes/odd.txt", "lines": 2}))
        assert result.structured_content["content"] == content[: content.index("x" * 1000)]


async def test_many_calls_at_once_are_each_answered_with_their_own(world: World, era: str) -> None:
    for number in range(60):
        world.write(f"notes/{number}.txt", f"this is {number}\n")
    answers: dict[int, str] = {}

    async with world.client(era) as client:

        async def read(number: int) -> None:
            result = done(await client.call_tool("read_file", {"path": f"notes:{number}.txt"}))
            answers[number] = result.structured_content["content"]

        async with anyio.create_task_group() as group:
            for number in range(60):
                group.start_soon(read, number)
    assert answers == {number: f"this is {number}\n" for number in range(60)}


async def test_a_long_command_does_not_hold_up_a_read(world: World, era: str) -> None:
    world.configure(NOBODY_IS_ASKED)
    async with world.client(era) as client, anyio.create_task_group() as group:

        async def wait() -> None:
            line = "touch notes/begun; until [ -e go ]; do sleep 0.05; done; echo late"
            result = done(await client.call_tool("shell", {"command": line}))
            order.append(text_of(result))

        order: list[str] = []
        group.start_soon(wait)
        assert await until(lambda: world.has("notes/begun"))
        done(await client.call_tool("read_file", {"path": "readme.txt"}))
        order.append("read")
        done(await client.call_tool("shell", {"command": "echo early"}))
        order.append("early")
        world.write("go", "")
    assert order[:2] == ["read", "early"] and "late" in order[2]
