from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from bookkeeper.errors import BookieUnavailableError
from examples.apache_servers.process import JavaProcess, java_command, run_to_end

SPEAKS = (sys.executable, "-uc", "print('up'); import time; time.sleep(600)")


def test_it_is_waited_for_and_starts_again_after_its_end(tmp_path: Path) -> None:
    child = JavaProcess("child", tmp_path, SPEAKS)
    assert child.wait(0) is None
    for end in (child.stop, child.kill):
        child.launch()
        child.wait_until(lambda: "up" in child.said, "up")
        assert (child.said, child.running) == ("up\n", True)
        end()
        end()
        assert child.pid is None
    assert child.log.read_text() == "up\nup\n"


def test_one_that_ends_too_early_is_told_with_its_last_words(tmp_path: Path) -> None:
    child = JavaProcess("child", tmp_path, (sys.executable, "-c", "raise SystemExit('no such port')"))
    child.launch()
    with pytest.raises(BookieUnavailableError, match=r"child ended before it was serving .*: no such port"):
        child.wait_until(lambda: False, "serving")


def test_one_that_takes_too_long_is_killed(tmp_path: Path) -> None:
    child = JavaProcess("child", tmp_path, SPEAKS)
    child.launch()
    with pytest.raises(BookieUnavailableError, match="child makes no progress, and is not serving"):
        child.wait_until(lambda: False, "serving", quiet_s=0.1)
    assert not child.running


def test_a_held_one_can_be_stopped(tmp_path: Path) -> None:
    child = JavaProcess("child", tmp_path, SPEAKS)
    child.launch()
    child.wait_until(lambda: "up" in child.said, "up")
    child.send(signal.SIGSTOP)
    child.stop()
    assert not child.running


@pytest.mark.interop
def test_the_command_runs_one_of_apaches_classes(apache: None, tmp_path: Path) -> None:
    command = java_command(tmp_path, "org.apache.bookkeeper.server.Main", "--help", heap_mb=64)
    assert {"-Xmx64m", "-XX:MaxDirectMemorySize=64m"} <= set(command)
    _, said = run_to_end(command, 60)
    assert "--conf" in said
