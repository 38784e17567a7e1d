"""The lock of a directory's elected replica, within a process and between processes."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from journal_manager.backends.file import ACTIVE
from journal_manager.errors import ElectionLostError
from journal_manager.journals.election import Election, open_election

CHILD = """
import asyncio, sys
from journal_manager.journals.election import (open_election)

async def main():
    election = await open_election(sys.argv[1], name="child")
    await election.campaign()
    print("elected", flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


def start(uri: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", CHILD, uri], stdout=subprocess.PIPE, text=True)


def held(election: Election) -> bool:
    return election.is_held


async def test_one_is_elected_in_a_directory_that_does_not_exist_yet(tmp_path: Path) -> None:
    uri = f"file://{tmp_path}/edits"
    one, two = [await open_election(uri, name=name) for name in ("a", "b")]
    await one.campaign()
    await one.campaign()
    campaign = asyncio.create_task(two.campaign())
    await asyncio.sleep(0)
    assert (held(one), held(two), campaign.done()) == (True, False, False)
    await one.close()
    await campaign
    assert held(two)
    await two.close()


async def test_one_whose_lock_file_was_removed_is_not_elected_any_more(tmp_path: Path) -> None:
    """The kernel's lock stayed on the file that was gone, and another one got the lock of the next file: both were
    elected, and the first went on to answer reads from an older state."""
    uri = f"file://{tmp_path}/edits"
    one, two = [await open_election(uri, name=name) for name in ("a", "b")]
    await one.campaign()
    (tmp_path / "edits" / ACTIVE).unlink()
    assert not held(one)
    async with asyncio.timeout(5):
        await one.lost()
    await two.campaign()
    assert (held(one), held(two)) == (False, True)
    with pytest.raises(ElectionLostError):
        await one.wait_until_held()
    campaign = asyncio.create_task(one.campaign())
    await asyncio.sleep(0.2)
    assert not campaign.done(), "the lock that it had is worth nothing"
    (tmp_path / "edits").rename(tmp_path / "elsewhere")
    await campaign
    assert (held(one), held(two)) == (True, False)
    await one.close()
    await two.close()


@pytest.mark.integration
async def test_a_stopped_process_stays_elected_and_a_killed_one_does_not(tmp_path: Path) -> None:
    uri = f"file://{tmp_path}/edits"
    with start(uri) as child:
        try:
            assert child.stdout is not None and child.stdout.readline() == "elected\n"
            child.send_signal(signal.SIGSTOP)
            election = await open_election(uri, name="parent")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await election.campaign()
            child.kill()
            child.wait()
            async with asyncio.timeout(20):
                await election.campaign()
            await election.close()
        finally:
            child.kill()
