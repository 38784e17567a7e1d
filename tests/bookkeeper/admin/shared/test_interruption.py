"""A signal as a wish, and a second one as an order."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys

import click
import pytest

from bookkeeper.admin.shared.interruption import Interruption
from bookkeeper.launchers.machine_speed import stretch


async def test_a_first_signal_is_noted_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    came = asyncio.Event()
    with Interruption() as asked:
        assert not asked
        asked.on_interrupt(came.set)
        os.kill(os.getpid(), signal.SIGINT)
        await came.wait()
        assert asked
        os.kill(os.getpid(), signal.SIGINT)  # timeout(1), a shell or a terminal tell the whole group: it comes twice
        again: list[int] = []
        asked.on_interrupt(lambda: again.append(1))
        assert again == [1], "whoever comes later is told at once"
        looked = asyncio.Event()
        asyncio.get_running_loop().call_later(0.01, looked.set)
        await looked.wait()
        with pytest.raises(click.exceptions.Exit) as ended:
            asked.end("all is well")
    assert ended.value.exit_code == 130
    assert capsys.readouterr().err == "bk: interrupted: all is well\n"


def test_a_second_signal_ends_the_process_at_once() -> None:
    script = """
import asyncio, os, signal
from bookkeeper.admin.shared.interruption import Interruption
async def main():
    with Interruption(one_wish_s=0) as asked:
        asked.leaves = "something is left"
        asked.on_interrupt(lambda: os.kill(os.getpid(), signal.SIGTERM))
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()
asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60 * stretch(), check=False
    )
    assert (done.returncode, done.stderr) == (143, "bk: interrupted again: something is left\n")


async def test_afterwards_signals_are_what_they_were() -> None:
    with Interruption():
        pass
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
