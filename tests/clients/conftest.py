"""A world for each test, and the proof that nothing of it is left."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import mcp.client.stdio
import pytest

from world import LEGACY, MODERN, PATIENCE, World, abandoned, children, reap, sessions, wait_until

# The Python SDK kills a server that takes two seconds to end. What is tested is that it ends by itself, not how soon.
mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT = PATIENCE

PR_SET_CHILD_SUBREAPER = 36


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--binary", type=Path, required=True, help="the stockade that is tested")
    parser.addoption("--node", help="a node that runs the Inspector")
    parser.addoption("--inspector", help="where the Inspector is installed")


def pytest_configure() -> None:
    # Whatever a server leaves running becomes a child of this process, whoever its parent was.
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot become a subreaper")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One line in the words of the Rust tests, for whoever counts both."""
    count = {what: len(terminalreporter.stats.get(what, [])) for what in ("passed", "failed", "error", "skipped")}
    bad = count["failed"] + count["error"]
    word = "FAILED" if bad else "ok"
    terminalreporter.write_line(f"test result: {word}. {count['passed']} passed; {bad} failed; {count['skipped']} ignored")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """What the servers of a test that failed said."""
    report = yield
    world = getattr(item, "funcargs", {}).get("world")
    if report.when == "call" and report.failed and world:
        report.sections.append(("standard error of the servers", world.said()))
    return report


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=[LEGACY, MODERN])
def era(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=["landlock", "namespaces"])
def backend(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="session")
def binary(pytestconfig: pytest.Config) -> Path:
    path = pytestconfig.getoption("--binary").resolve()
    assert os.access(path, os.X_OK), f"{path} cannot be executed"
    return path


def alone() -> bool:
    reap()
    return not children()


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    before = sessions()
    yield
    clean = wait_until(alone)
    left = children()
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert clean, f"processes are left: {left}"
    directories = abandoned(before)
    assert not directories, f"session directories are left: {directories}"


@pytest.fixture
def world(binary: Path, nothing_is_left: None) -> Iterator[World]:
    it = World(binary)
    yield it
    # A client that ends may still be removing its own files. What never ends, `nothing_is_left` tells of.
    wait_until(alone)
    it.check_and_remove()
