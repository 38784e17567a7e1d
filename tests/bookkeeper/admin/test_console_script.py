"""The console script, which loads the command."""

from __future__ import annotations

import signal
import subprocess
import sys
from unittest import mock

import pytest

from bookkeeper.admin import console_script
from bookkeeper.launchers.machine_speed import stretch

INTERRUPTED_WHILE_IT_LOADS = """
import os, signal, sys
{before}
class Interrupts:
    def find_spec(self, name, *_):
        if name == "click":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupts())
sys.argv = ["bk", "--version"]
from bookkeeper.admin.console_script import main
main()
"""


def _interrupted(before: str = "") -> subprocess.CompletedProcess[str]:
    script = INTERRUPTED_WHILE_IT_LOADS.format(before=before)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60 * stretch())


def test_ctrl_c_while_the_command_is_loaded_says_nothing() -> None:
    done = _interrupted()
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_ctrl_c_that_the_shell_has_it_ignore_stays_ignored() -> None:
    done = _interrupted("signal.signal(signal.SIGINT, signal.SIG_IGN)")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("bk ")


def test_afterwards_ctrl_c_is_the_command_s(monkeypatch: pytest.MonkeyPatch) -> None:
    during: list[object] = []
    monkeypatch.setattr("bookkeeper.admin.cli.main", lambda: during.append(signal.getsignal(signal.SIGINT)))
    with mock.patch("signal.getsignal", wraps=signal.getsignal):
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            console_script.main()
        finally:
            signal.signal(signal.SIGINT, before)
    assert during == [signal.default_int_handler]


@pytest.mark.parametrize(
    ("line", "serves"),
    [
        ("bookie --dir d", True),
        ("bookie", True),
        ("gateway webhdfs --listen h:1", True),
        ("gateway grpc", True),
        ("autorecovery --name healer", True),
        ("autorecovery run", True),
        ("standalone", True),
        ("zookeeper --port 1", True),
        ("bookie --help", False),
        ("bookie list-logs d", False),
        ("autorecovery status", False),
        ("gateway token name", False),
        ("bookies", False),
        ("", False),
    ],
)
def test_a_process_that_is_going_to_serve_says_from_its_first_line_on_what_it_does(line: str, serves: bool) -> None:
    assert console_script.is_server(line.split()) is serves
