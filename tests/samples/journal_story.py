"""What the samples of journals hold: edits with op codes and requests, segments, a snapshot, and a writer that died."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final

from journal_manager import EditLog, Op, RequestId, SnapshotInfo, open_reader, open_snapshots, read_ops, restore_newest
from tests.samples.story import HOME

JOURNALS: Final = {
    "journal-directory": (f"file://{HOME}/journal", HOME / "journal"),
    "journal-on-embedded": (f"bk+embedded://{HOME}/cluster?bookies=3&name=sample", HOME / "cluster"),
}
"""Sample -> the journal's address, and what is packed."""
EDITS: Final = 30
SNAPSHOT_AT: Final = 15
SNAPSHOT: Final = bytes(range(256)) * 20
_ROLLS: Final = (10, 20)
_MORE: Final = b"goes on"


def edit(txid: int) -> Op:
    """Every third one carries a request."""
    request = RequestId(b"client", txid) if txid % 3 == 0 else None
    return Op(txid % 5, txid, b"edit %d " % txid * (1 + txid % 7), request)


async def write_journal(uri: str) -> EditLog:
    """Returns the log with its last segment open."""
    log = await EditLog.open(uri, owner="sample")
    for wanted in map(edit, range(1, EDITS + 1)):
        assert await log.log(wanted.body, wanted.opcode, request=wanted.request) == wanted.txid
        if wanted.txid in _ROLLS:
            await log.roll()
        if wanted.txid == SNAPSHOT_AT:
            await log.save_snapshot(SNAPSHOT_AT, [SNAPSHOT])
    return log


async def read_journal(uri: str) -> None:
    """Everything is as it was written; what was left open is recovered, and the log goes on."""
    async with await open_reader(uri) as reader:
        first = [op async for op in read_ops(reader, 1, EDITS - 1)]
        assert first == [edit(txid) for txid in range(1, EDITS)]
    async with await open_snapshots(uri) as store:
        found = list[bytes]()

        async def restore(info: SnapshotInfo, chunks: AsyncGenerator[bytes, None]) -> None:
            found[:] = [chunk async for chunk in chunks]

        newest = await restore_newest(store, restore)
        assert newest is not None and (newest.at, b"".join(found)) == (SNAPSHOT_AT, SNAPSHOT)
    async with await EditLog.open(uri, owner="later") as log:
        ops = [op async for op in log.read(1)]
        assert ops[:EDITS] == [edit(txid) for txid in range(1, EDITS + 1)]
        assert {op.body for op in ops[EDITS:]} <= {_MORE}
        assert await log.log(_MORE) == len(ops) + 1
