"""Who is asked: a scripted person behind the client's elicitation handler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from mcp_types import INTERNAL_ERROR, ElicitRequestFormParams, ElicitResult, ErrorData

Answer = Callable[[], Awaitable[ElicitResult | ErrorData]]


class Person:
    """Gives one answer to each question, in order; declines what no answer is left for, and remembers that it came."""

    def __init__(self, *answers: Answer, always: Answer | None = None) -> None:
        self.answers = list(answers)
        self.always = always
        self.asked: list[ElicitRequestFormParams] = []
        self.unexpected: list[str] = []

    async def __call__(self, _context: Any, question: Any) -> ElicitResult | ErrorData:
        return await self.answer(question)

    async def answer(self, question: Any) -> ElicitResult | ErrorData:
        assert isinstance(question, ElicitRequestFormParams), f"not a form: {question}"
        self.asked.append(question)
        if self.answers:
            return await self.answers.pop(0)()
        if self.always:
            return await self.always()
        self.unexpected.append(question.message)
        return ElicitResult(action="decline")

    def was_asked(self, times: int) -> None:
        """Every answer was given, and nothing else was asked."""
        assert not self.unexpected, self.unexpected
        assert len(self.asked) == times, [question.message for question in self.asked]
        assert not self.answers


def accept(content: Any) -> Answer:
    async def answer() -> ElicitResult:
        return ElicitResult(action="accept", content=content)

    return answer


once = accept({"decision": "once"})
for_the_session = accept({"decision": "session"})


def deny(note: str | None = None) -> Answer:
    return accept({"decision": "deny"} if note is None else {"decision": "deny", "note": note})


async def decline() -> ElicitResult:
    return ElicitResult(action="decline")


async def cancel() -> ElicitResult:
    return ElicitResult(action="cancel")


async def error() -> ErrorData:
    """The handler answers with an error of the protocol."""
    return ErrorData(code=INTERNAL_ERROR, message="nobody is here")


async def breaks() -> ElicitResult:
    """The handler raises."""
    raise RuntimeError("the dialogue crashed")


def after(seconds: float, answer: Answer) -> Answer:
    async def late() -> ElicitResult | ErrorData:
        await anyio.sleep(seconds)
        return await answer()

    return late


class Gate:
    """An answer that is given when the test says so."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.reached = anyio.Event()
        self.open = anyio.Event()

    async def __call__(self) -> ElicitResult | ErrorData:
        self.reached.set()
        await self.open.wait()
        return await self.answer()
