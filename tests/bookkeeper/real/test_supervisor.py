"""What systemd is told, over a real socket."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from bookkeeper.real.supervisor import NotifySocket


@pytest.fixture
def heard(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        listener.settimeout(60)
        yield listener


def lines(listener: socket.socket) -> list[str]:
    """The next message."""
    return listener.recv(4096).decode().split("\n")


def test_each_step_is_one_message(heard: socket.socket, tmp_path: Path) -> None:
    supervisor = NotifySocket(str(tmp_path / "notify"))
    supervisor.starting("opening storage")
    supervisor.ready("bookie b1 serves at 127.0.0.1:3181")
    supervisor.stopping()
    assert lines(heard) == ["STATUS=starting: opening storage"]
    assert lines(heard) == ["READY=1", "STATUS=bookie b1 serves at 127.0.0.1:3181"]
    assert lines(heard) == ["STOPPING=1", "STATUS=stopping"]


def test_an_abstract_socket_is_reached() -> None:
    name = f"bk-notify-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(f"\0{name}")
        listener.settimeout(60)
        NotifySocket(f"@{name}").ready("serves")
        assert lines(listener)[0] == "READY=1"


def test_the_environment_is_read_once_and_children_do_not_have_it(heard: socket.socket, tmp_path: Path) -> None:
    environment = {
        "NOTIFY_SOCKET": str(tmp_path / "notify"),
        "WATCHDOG_USEC": "30000000",
        "WATCHDOG_PID": str(os.getpid()),
        "HOME": "/",
    }
    supervisor = NotifySocket.of_this_process(environment)
    assert environment == {"HOME": "/"}
    assert supervisor.alive_every_s == 10
    supervisor.alive()
    assert lines(heard) == ["WATCHDOG=1"]


@pytest.mark.parametrize(
    ("environment", "warns"),
    [
        ({}, False),
        ({"WATCHDOG_USEC": "1000000"}, False),
        ({"NOTIFY_SOCKET": "/nowhere", "WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"}, False),
        ({"NOTIFY_SOCKET": "/nowhere", "WATCHDOG_USEC": "0"}, False),
        ({"NOTIFY_SOCKET": "/nowhere", "WATCHDOG_USEC": "soon"}, True),
        ({"NOTIFY_SOCKET": "vsock:2:1", "WATCHDOG_USEC": "1000000"}, True),
    ],
)
def test_where_nobody_waits_for_signs_of_life_none_is_given(
    environment: dict[str, str], warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert NotifySocket.of_this_process(dict(environment)).alive_every_s is None
    assert bool(caplog.records) == warns


def test_a_supervisor_that_is_gone_ends_nothing_and_is_told_of_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    NotifySocket(str(tmp_path / "gone")).ready("serves")
    assert [record.getMessage() for record in caplog.records] == [
        "the supervisor is not told 'READY=1': No such file or directory"
    ]
    NotifySocket().ready("serves")
    assert len(caplog.records) == 1


def test_a_sign_of_life_never_waits_for_a_supervisor_that_does_not_read(heard: socket.socket, tmp_path: Path) -> None:
    supervisor, count = NotifySocket(str(tmp_path / "notify"), 3.0), 5000
    for _ in range(count):
        supervisor.alive()
    heard.setblocking(False)
    read = 0
    with pytest.raises(BlockingIOError):
        while True:
            read += len(lines(heard))
    assert 0 < read < count, "the others were left out"


async def test_signs_of_life_come_as_long_as_the_loop_turns(heard: socket.socket, tmp_path: Path) -> None:
    NotifySocket(str(tmp_path / "notify"), 0.03).watch(asyncio.get_running_loop())
    for _ in range(5):
        assert await asyncio.to_thread(lines, heard) == ["WATCHDOG=1"]
