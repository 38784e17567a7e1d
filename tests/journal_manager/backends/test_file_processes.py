"""A file journal between real processes: one is stopped or killed in the middle of writing, another takes over."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from journal_manager import EditLog, TxId

CHILD = """
import asyncio, sys
from journal_manager import EditLog, JournalFencedError

async def main():
    log = await EditLog.open(sys.argv[1], owner="child")
    try:
        while True:
            print(await log.log(b"child"), flush=True)
    except JournalFencedError as error:
        print("fenced by", error.by.owner, flush=True)

asyncio.run(main())
"""


def start(uri: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", CHILD, uri], stdout=subprocess.PIPE, text=True)


def acknowledged(child: subprocess.Popen[str], count: int) -> int:
    assert child.stdout is not None
    last = 0
    for _ in range(count):
        last = int(child.stdout.readline())
    return last


@pytest.mark.integration
@pytest.mark.rule("C5", "C8")
async def test_a_stopped_process_that_goes_on_is_fenced(tmp_path: Path) -> None:
    uri = f"file://{tmp_path}/edits"
    with start(uri) as child:
        try:
            acknowledged(child, 20)
            child.send_signal(signal.SIGSTOP)
            log = await EditLog.open(uri, owner="parent")
            mine = await log.log(b"parent")
            child.send_signal(signal.SIGCONT)
            assert child.stdout is not None
            *acks, end = child.stdout.read().split("\n")[:-1]
            assert end == "fenced by parent" and all(int(ack) < mine for ack in acks)
            assert [op.body async for op in log.read(TxId(1))] == [b"child"] * (mine - 1) + [b"parent"]
            await log.close()
        finally:
            child.kill()


@pytest.mark.integration
@pytest.mark.rule("C4", "C8")
async def test_a_killed_process_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    uri = f"file://{tmp_path}/edits"
    last = 0
    for _ in range(3):
        with start(uri) as child:
            last = acknowledged(child, 10)
            child.kill()
            assert child.stdout is not None
            last = max([last, *(int(line) for line in child.stdout.read().split("\n")[:-1] if line)])
        log = await EditLog.open(uri, owner="parent")
        assert log.recovery.last_txid in (last, last + 1)
        assert [op.txid async for op in log.read(TxId(1))] == list(range(1, log.recovery.last_txid + 1))
        await log.close()
