"""The scratch world of one test: a workspace, a config, the server, and what is there afterwards."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types import CallToolResult, TextContent

LEGACY = "legacy"
MODERN = "modern"

# How the Python SDK is told which era to speak, and what is then spoken.
MODES = {LEGACY: "legacy", MODERN: "auto"}
VERSIONS = {LEGACY: "2025-11-25", MODERN: "2026-07-28"}

# Where a server over HTTP says that it is.
SERVING = re.compile(r"serving MCP at (http://\S+)")

# How long anything may take. A busy machine must not reach it: it ends a hang.
PATIENCE = 240.0

ROOTS = """
extends: [system]
sandbox:
  backend: BACKEND
  protect_fallback: undo
  paths:
    project: {root: ./work, mode: rw, write_approval: true}
    notes: {root: ./work/notes, mode: rw, approval: {write: none}}
    vault: {root: ./vault, approval: {read: required}}
"""

RULES = """
shell:
  default: {approval: required}
  rules:
    - {pattern: cat, approval: none}
    - {pattern: echo, approval: none}
    - {pattern: sleep, approval: none}
    - {pattern: python3 -B, approval: none}
    - {pattern: rm, allowed: false, reason: delete through delete_file}
custom_tools:
  count:
    description: Count the lines of a file
    command: [wc, -l, "{path}"]
    args: {path: {type: path, root: project, description: what to count}}
    approval: none
    sandbox_paths: [notes]
"""

CONFIG = ROOTS + RULES

NOBODY_IS_ASKED = ROOTS + "shell: {default: {approval: none}}\n"


class World:
    """A folder with `work` (the workspace), `vault`, `outside`, `home`, `private` (the server's TMPDIR) and a config."""

    def __init__(self, binary: Path) -> None:
        self.binary = binary
        # Not /tmp: where commands have one of their own, the server wants its TMPDIR elsewhere.
        self.base = Path(tempfile.mkdtemp(prefix="stockade-clients-", dir="/var/tmp"))
        self.work = self.base / "work"
        self.private = self.base / "private"
        self.outside = self.base / "outside"
        self.home = self.base / "home"
        self.vault = self.base / "vault"
        for folder in (self.work, self.private, self.outside, self.home, self.vault, self.work / "notes"):
            folder.mkdir()
        self.write("readme.txt", "one\ntwo\nthree\n")
        (self.vault / "combination").write_text("17-4-39\n")
        (self.outside / "secret").write_text("not yours\n")
        self.config = self.base / "stockade.yaml"
        self.configure(CONFIG)
        self.stderr = self.base / "stderr"
        self.stderr.touch()

    # What is there.

    def configure(self, text: str, backend: str = "auto") -> None:
        self.config.write_text(text.replace("BACKEND", backend))

    def write(self, name: str, text: str) -> Path:
        file = self.work / name
        file.write_text(text)
        return file

    def read(self, name: str) -> str:
        return (self.work / name).read_text()

    def has(self, name: str) -> bool:
        return (self.work / name).exists()

    def said(self) -> str:
        """What the servers wrote to standard error."""
        return self.stderr.read_text()

    # The server.

    def argv(self, *flags: str) -> list[str]:
        return [str(self.binary), "mcp", "--config", str(self.config), "--cwd", str(self.work), *flags]

    def environment(self) -> dict[str, str]:
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "TMPDIR": str(self.private),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
        }

    @asynccontextmanager
    async def client(
        self, era: str, person: Any = None, *flags: str, argv: Sequence[str] | None = None, mode: str | None = None
    ) -> AsyncIterator[Client]:
        """The Python SDK's client with a server of its own; `person` answers what the server asks."""
        command, *arguments = argv or self.argv(*flags)
        parameters = StdioServerParameters(command=command, args=arguments, env=self.environment(), cwd=self.base)
        noise: list[Exception] = []

        async def hear(message: Any) -> None:
            if isinstance(message, Exception):
                noise.append(message)

        with self.stderr.open("a") as errors, only_what_went_wrong(), anyio.fail_after(PATIENCE):
            client = Client(
                stdio_client(parameters, errlog=errors),
                mode=mode or MODES[era],
                elicitation_callback=person,
                message_handler=hear,
            )
            async with client:
                assert client.protocol_version == VERSIONS[era]
                yield client
        assert not noise, f"something else than the protocol came on standard output: {noise}"

    @asynccontextmanager
    async def served(self, *flags: str) -> AsyncIterator[Served]:
        """A server over HTTP, until the end; then it must end by itself."""
        token = self.base / "token"
        token.write_text(secrets.token_hex(32))
        token.chmod(0o600)
        with self.stderr.open("a") as errors:
            argv = self.argv("--http", "127.0.0.1:0", "--token-file", str(token), *flags)
            process = subprocess.Popen(
                argv, env=self.environment(), cwd=self.base, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors
            )
        try:
            assert await until(lambda: SERVING.search(self.said()) is not None), self.said()
            yield Served(SERVING.search(self.said())[1], token.read_text())
        finally:
            process.terminate()
            assert await until(lambda: process.poll() is not None), "it did not end"
        assert process.returncode == 0

    # What is left.

    def check_and_remove(self) -> None:
        """Nothing of the server's is left where it keeps what is private."""
        left = wait_until(lambda: not list(self.private.iterdir())) or list(self.private.rglob("*"))
        shutil.rmtree(self.base)
        assert left is True, f"left behind by the server: {left}"


@dataclass
class Served:
    """Where a server over HTTP is, and what it wants to hear."""

    url: str
    token: str

    @asynccontextmanager
    async def client(self, era: str, person: Any = None) -> AsyncIterator[Client]:
        headers = {"Authorization": f"Bearer {self.token}"}
        with only_what_went_wrong(), anyio.fail_after(PATIENCE):
            async with create_mcp_http_client(headers=headers) as http:
                transport = streamable_http_client(self.url, http_client=http)
                async with Client(transport, mode=MODES[era], elicitation_callback=person) as client:
                    assert client.protocol_version == VERSIONS[era]
                    yield client


@contextmanager
def only_what_went_wrong() -> Iterator[None]:
    """Takes one exception out of the task groups that it came through."""
    try:
        yield
    except ExceptionGroup as group:
        inner: Exception = group
        while isinstance(inner, ExceptionGroup) and len(inner.exceptions) == 1:
            inner = inner.exceptions[0]
        raise inner from None


def text_of(result: CallToolResult) -> str:
    return "\n".join(part.text for part in result.content if isinstance(part, TextContent))


def done(result: CallToolResult) -> CallToolResult:
    """The result of a call that must have been carried out."""
    assert not result.is_error, text_of(result)
    return result


def failed(result: CallToolResult) -> str:
    """What a model reads of a call that must not have been carried out."""
    assert result.is_error, text_of(result)
    text = text_of(result)
    assert text.strip(), "an error that says nothing"
    return text


def wait_until(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


async def until(condition: Callable[[], bool]) -> bool:
    with anyio.move_on_after(PATIENCE):
        while not condition():
            await anyio.sleep(0.02)
        return True
    return condition()


# Processes.


def running(word: str) -> list[int]:
    """The processes that have `word` among their arguments, as the host sees them."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            arguments = (entry / "cmdline").read_bytes().split(b"\0")
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if word.encode() in arguments and state not in "ZX":
            found.append(int(entry.name))
    return found


def children() -> dict[int, str]:
    """This process's children, orphans of its descendants among them, and what each is."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            if int(parent) == os.getpid():
                arguments = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found[int(entry.name)] = "zombie" if state in "ZX" else arguments
        except (OSError, ValueError):
            continue
    return found


def reap() -> None:
    for pid, what in children().items():
        if what == "zombie":
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass


# Session directories where they are without a TMPDIR.


def sessions() -> set[Path]:
    """This user's session directories."""
    places = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))
    return {lock.parent for place in places for lock in place.glob(f"stockade-{os.geteuid()}*/*/lock")}


def abandoned(since: set[Path]) -> set[Path]:
    """The session directories that were not there before, that stay, and that no living server or keeper holds."""
    known = held()
    new = {directory for directory in sessions() - since if number(directory / "lock") not in known}
    # One that is just beginning or ending is nobody's for a moment.
    wait_until(lambda: all(not one.exists() or number(one / "lock") in held() for one in new))
    return {directory for directory in new if not is_held(directory / "lock")}


def held() -> set[int]:
    """The inodes of what is locked, as far as this process is told."""
    # `7: FLOCK ADVISORY WRITE 4711 fe:00:131073 0 EOF`
    return {int(inode) for inode in re.findall(r" [0-9a-f]+:[0-9a-f]+:(\d+) ", Path("/proc/locks").read_text())}


def number(file: Path) -> int | None:
    try:
        return file.stat().st_ino
    except OSError:
        return None


def is_held(lock: Path) -> bool:
    try:
        with lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        # Locked, or gone after all.
        return True
    return False


def run(argv: Sequence[str], **rest: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL, check=False, **rest
    )
