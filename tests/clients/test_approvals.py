"""Who is asked, how, and what becomes of the call: form elicitation in both eras."""

from __future__ import annotations

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult, InputRequiredResult

from people import Gate, Person, accept, after, breaks, cancel, decline, deny, error, for_the_session, once
from world import LEGACY, MODERN, World, done, failed, text_of

pytestmark = pytest.mark.anyio

CHANGE = {"path": "readme.txt", "edits": [{"old": "two", "new": "2"}]}
BEFORE, AFTER = "one\ntwo\nthree\n", "one\n2\nthree\n"


async def edit(client: Client):
    return await client.call_tool("edit_file", CHANGE)


async def test_the_form_asks_for_one_decision_and_shows_the_change(world: World, era: str) -> None:
    async with world.client(era, person := Person(once)) as client:
        done(await edit(client))
    person.was_asked(1)
    [question] = person.asked
    schema = question.requested_schema
    assert set(schema["properties"]) == {"decision", "note"}
    assert schema["required"] == ["decision"]
    decision = schema["properties"]["decision"]
    choices = decision.get("enum") or [choice["const"] for choice in decision["oneOf"]]
    # What a yes for the session can cover, narrowest first.
    assert choices[:2] == ["once", "session"] and choices[-1] == "deny"
    wider = choices[2:-1]
    assert [choice.startswith("session: edit_file ") for choice in wider] == [True, True]
    assert "readme.txt" in wider[0] and wider[1].endswith("anywhere in project")
    assert schema["properties"]["note"]["type"] == "string"
    assert "edit_file" in question.message and "readme.txt" in question.message
    assert "-two" in question.message and "+2" in question.message


async def test_the_form_shows_the_command_and_what_it_may_write(world: World, era: str) -> None:
    async with world.client(era, person := Person(once)) as client:
        result = done(await client.call_tool("shell", {"command": "touch new.txt && cat new.txt"}))
        assert result.structured_content["code"] == 0
    person.was_asked(1)
    assert "touch new.txt && cat new.txt" in person.asked[0].message
    assert str(world.work) in person.asked[0].message
    assert world.has("new.txt")


NO = {
    "deny": deny(),
    "decline": decline,
    "cancel": cancel,
    "an answer without a decision": accept({"note": "once"}),
    "an answer without content": accept(None),
    "an empty answer": accept({}),
    "a decision that there is not": accept({"decision": "approve"}),
    "a decision in capitals": accept({"decision": "Once"}),
    "a decision with a space": accept({"decision": "once "}),
    "a decision that is true": accept({"decision": True}),
    "a decision that is a number": accept({"decision": 1}),
    "decisions": accept({"decision": ["once"]}),
    "a note that is no text": accept({"decision": "once", "note": ["fine"]}),
    "declined, with a decision": lambda: _result("decline"),
    "cancelled, with a decision": lambda: _result("cancel"),
}


async def _result(action: str) -> ElicitResult:
    return ElicitResult(action=action, content={"decision": "once"})


async def test_what_is_not_a_yes_is_a_no(world: World, era: str) -> None:
    async with world.client(era, person := Person(*NO.values(), once)) as client:
        for no in NO:
            text = failed(await edit(client))
            assert "denied" in text and "edit_file" in text, no
            assert world.read("readme.txt") == BEFORE, no
        # The twin.
        done(await edit(client))
    assert world.read("readme.txt") == AFTER
    person.was_asked(len(NO) + 1)


async def test_a_handler_that_answers_with_an_error_approves_nothing(world: World, era: str) -> None:
    async with world.client(era, person := Person(error, once)) as client:
        if era == LEGACY:
            assert "denied" in failed(await edit(client))
        else:
            # The SDK itself gives up; the server never hears of it.
            with pytest.raises(MCPError, match="nobody is here"):
                await edit(client)
        assert world.read("readme.txt") == BEFORE
        done(await edit(client))
    person.was_asked(2)


async def test_a_handler_that_breaks_approves_nothing(world: World, era: str) -> None:
    async with world.client(era, person := Person(breaks, once)) as client:
        if era == LEGACY:
            assert "denied" in failed(await edit(client))
        else:
            with pytest.raises(Exception) as raised:
                await edit(client)
            assert raised.group_contains(RuntimeError, match="the dialogue crashed")
        assert world.read("readme.txt") == BEFORE
        done(await edit(client))
    person.was_asked(2)


async def test_a_yes_that_comes_too_late_is_a_no(world: World, era: str) -> None:
    # On a busy machine the other yes, which is given at once, may come too late as well.
    for seconds in (1, 4, 16, 64):
        person = Person(after(seconds + 0.6, once), once)
        async with world.client(era, person, "--approval-timeout", f"{seconds}s") as client:
            text = failed(await edit(client))
            assert "denied" in text
            assert world.read("readme.txt") == BEFORE
            in_time = not (await edit(client)).is_error
        person.was_asked(2)
        if in_time:
            break
    assert world.read("readme.txt") == AFTER


async def test_why_it_was_denied_reaches_the_model(world: World, era: str) -> None:
    async with world.client(era, person := Person(deny("put it into notes/ instead"))) as client:
        text = failed(await edit(client))
    assert "put it into notes/ instead" in text
    assert "permission denied" in text
    person.was_asked(1)


async def test_once_is_for_one_call(world: World, era: str) -> None:
    call = ("write_file", {"path": "new.txt", "content": "x\n"})
    async with world.client(era, person := Person(once, deny())) as client:
        done(await client.call_tool(*call))
        (world.work / "new.txt").unlink()
        failed(await client.call_tool(*call))
    assert not world.has("new.txt")
    person.was_asked(2)


async def test_for_the_session_is_for_exactly_this_until_the_session_ends(world: World, era: str) -> None:
    call = ("shell", {"command": "touch new.txt"})
    async with world.client(era, person := Person(for_the_session, deny())) as client:
        done(await client.call_tool(*call))
        (world.work / "new.txt").unlink()
        done(await client.call_tool(*call))
        assert world.has("new.txt")
        failed(await client.call_tool("shell", {"command": "touch other.txt"}))
    person.was_asked(2)
    assert not world.has("other.txt")
    # Another session knows nothing of it.
    (world.work / "new.txt").unlink()
    async with world.client(era, person := Person(deny())) as client:
        failed(await client.call_tool(*call))
    person.was_asked(1)
    assert not world.has("new.txt")


async def test_a_client_that_cannot_ask_is_told_the_rule_that_would_allow_it(world: World, era: str) -> None:
    async with world.client(era) as client:
        text = failed(await edit(client))
        assert "permission denied" in text
        assert "project" in text and "stockade.yaml:7" in text and "needs a yes" in text
        text = failed(await client.call_tool("shell", {"command": "touch new.txt"}))
        assert "shell.default" in text or "approval: none" in text
        # What needs no asking is done.
        done(await client.call_tool("write_file", {"path": "notes/new.txt", "content": "x"}))
    assert world.read("readme.txt") == BEFORE
    assert world.has("notes/new.txt") and not world.has("new.txt")


async def test_strict_mode_asks_nobody(world: World, era: str) -> None:
    async with world.client(era, person := Person(), "--mode", "strict") as client:
        assert "strict" in failed(await edit(client))
        done(await client.call_tool("read_file", {"path": "readme.txt"}))
    person.was_asked(0)
    assert world.read("readme.txt") == BEFORE


async def test_what_is_blocked_is_not_asked_about(world: World, era: str) -> None:
    async with world.client(era, person := Person()) as client:
        assert "delete through delete_file" in failed(await client.call_tool("shell", {"command": "rm readme.txt"}))
        failed(await client.call_tool("write_file", {"path": str(world.outside / "x"), "content": "x"}))
        failed(await client.call_tool("write_file", {"path": ".git/hooks/pre-commit", "content": "x"}))
    person.was_asked(0)
    assert world.has("readme.txt") and not (world.outside / "x").exists()


async def test_without_elicitation_in_the_config_no_client_is_asked(world: World, era: str) -> None:
    config = world.config.read_text()
    world.config.write_text(config + "approval: {channel: [terminal, socket]}\n")
    async with world.client(era, person := Person()) as client:
        assert "permission denied" in failed(await edit(client))
    person.was_asked(0)
    assert world.read("readme.txt") == BEFORE
    # The twin.
    world.config.write_text(config + "approval: {channel: [socket, elicitation]}\n")
    async with world.client(era, person := Person(once)) as client:
        done(await edit(client))
    person.was_asked(1)


async def test_a_root_that_needs_a_yes_to_be_read_is_not_there_without_one(world: World, era: str) -> None:
    async with world.client(era, person := Person(deny(), once)) as client:
        # Nobody was asked about this command, so the vault does not exist for it.
        result = await client.call_tool("shell", {"argv": ["cat", str(world.vault / "combination")]})
        assert result.is_error and "17-4-39" not in text_of(result)
        assert "17-4-39" not in failed(await client.call_tool("read_file", {"path": "vault:combination"}))
        assert "17-4-39" in text_of(done(await client.call_tool("read_file", {"path": "vault:combination"})))
    person.was_asked(2)


async def test_an_open_question_does_not_hold_up_other_calls(world: World, era: str) -> None:
    gate = Gate(once)
    async with world.client(era, person := Person(gate)) as client, anyio.create_task_group() as group:

        async def ask() -> None:
            done(await edit(client))

        group.start_soon(ask)
        await gate.reached.wait()
        done(await client.call_tool("read_file", {"path": "readme.txt"}))
        done(await client.call_tool("shell", {"command": "echo meanwhile"}))
        assert world.read("readme.txt") == BEFORE
        gate.open.set()
    assert world.read("readme.txt") == AFTER
    person.was_asked(1)


async def test_each_of_several_questions_gets_its_own_answer(world: World, era: str) -> None:
    class ByName(Person):
        async def answer(self, question):
            self.asked.append(question)
            return await (deny("an odd one") if "odd" in question.message else once)()

    results = {}
    async with world.client(era, person := ByName()) as client:

        async def write(name: str) -> None:
            results[name] = await client.call_tool("write_file", {"path": name, "content": name})

        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(write, f"{'odd' if number % 2 else 'even'}-{number}.txt")
    person.was_asked(8)
    for name, result in results.items():
        assert result.is_error is name.startswith("odd"), name
        assert world.has(name) is name.startswith("even"), name


async def test_what_changed_while_somebody_was_asked_is_not_written_over(world: World, era: str) -> None:
    gate = Gate(once)
    async with world.client(era, person := Person(gate, deny("that is not what I saw"))) as client:

        async def ask() -> None:
            assert "that is not what I saw" in failed(await edit(client))

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await gate.reached.wait()
            world.write("readme.txt", "zero\ntwo\n")
            gate.open.set()
    assert world.read("readme.txt") == "zero\ntwo\n"
    person.was_asked(2)
    assert "zero" in person.asked[1].message


async def test_a_call_that_is_given_up_while_it_is_asked_about_is_not_carried_out(world: World, era: str) -> None:
    gate = Gate(once)
    async with world.client(era, person := Person(gate, once)) as client:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(edit, client)
                await gate.reached.wait()
                scope.cancel()
        gate.open.set()
        await anyio.sleep(0.5)
        assert world.read("readme.txt") == BEFORE
        done(await edit(client))
    assert world.read("readme.txt") == AFTER
    person.was_asked(2)


# The state that a client of the new era carries between the question and the answer.


YES = {"action": "accept", "content": {"decision": "once"}}


async def asked(client: Client, name: str, arguments: dict) -> InputRequiredResult:
    result = await client.session.call_tool(name, arguments, allow_input_required=True)
    assert isinstance(result, InputRequiredResult), result
    assert result.request_state and len(result.input_requests) == 1
    return result


async def answered(client: Client, name: str, arguments: dict, question: InputRequiredResult, state: str | None):
    responses = {key: ElicitResult(**YES) for key in question.input_requests}
    try:
        return await client.session.call_tool(
            name, arguments, input_responses=responses, request_state=state, allow_input_required=True
        )
    except MCPError as refused:
        return refused


def is_done(result) -> bool:
    return not isinstance(result, InputRequiredResult | MCPError) and not result.is_error


async def test_a_state_approves_the_call_it_was_made_for_once(world: World) -> None:
    call = ("write_file", {"path": "new.txt", "content": "x\n"})
    async with world.client(MODERN, Person()) as client:
        question = await asked(client, *call)
        assert is_done(await answered(client, *call, question, question.request_state))
        assert world.has("new.txt")
        (world.work / "new.txt").unlink()
        assert not is_done(await answered(client, *call, question, question.request_state))
    assert not world.has("new.txt")


async def test_a_state_approves_nothing_else_than_what_was_asked(world: World) -> None:
    call = ("write_file", {"path": "new.txt", "content": "x\n"})
    others = [
        ("write_file", {"path": "new.txt", "content": "y\n"}),
        ("write_file", {"path": "other.txt", "content": "x\n"}),
        ("delete_file", {"path": "readme.txt"}),
        ("shell", {"command": "touch other.txt"}),
    ]
    async with world.client(MODERN, Person()) as client:
        for other in others:
            question = await asked(client, *call)
            assert not is_done(await answered(client, *other, question, question.request_state)), other
        assert not world.has("new.txt") and not world.has("other.txt") and world.has("readme.txt")
        # The twin.
        question = await asked(client, *call)
        assert is_done(await answered(client, *call, question, question.request_state))


async def test_a_state_that_the_server_did_not_make_approves_nothing(world: World) -> None:
    call = ("write_file", {"path": "new.txt", "content": "x\n"})
    async with world.client(MODERN, Person()) as client:
        state = (await asked(client, *call)).request_state
        middle = len(state) // 2
        forged = [
            None,
            "",
            "approved",
            state[:-1],
            state + "A",
            state[:middle] + ("A" if state[middle] != "A" else "B") + state[middle + 1 :],
            "x" * 200_000,
        ]
        for forgery in forged:
            question = await asked(client, *call)
            assert not is_done(await answered(client, *call, question, forgery)), forgery and forgery[:80]
            assert not world.has("new.txt")
        question = await asked(client, *call)
        assert is_done(await answered(client, *call, question, question.request_state))


async def test_a_state_of_another_server_approves_nothing(world: World) -> None:
    call = ("write_file", {"path": "new.txt", "content": "x\n"})
    async with world.client(MODERN, Person()) as one, world.client(MODERN, Person()) as two:
        question = await asked(one, *call)
        assert not is_done(await answered(two, *call, question, question.request_state))
        assert not world.has("new.txt")
        assert is_done(await answered(one, *call, question, question.request_state))
    assert world.has("new.txt")
