"""What the samples of journals hold: edits with op codes and requests, segments, a snapshot, and a writer that died.
In some of them edits were discarded, too."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final

from journal_manager import (
    Discard,
    EditLog,
    EditsDiscardedError,
    Op,
    RequestId,
    SnapshotInfo,
    capability,
    open_reader,
    open_snapshots,
    open_writer,
    read_ops,
    read_runs,
    restore_newest,
)
from tests.samples.story import HOME

JOURNALS: Final = {
    "journal-directory": (f"file://{HOME}/journal", HOME / "journal"),
    "journal-on-embedded": (f"bk+embedded://{HOME}/cluster?bookies=3&name=sample", HOME / "cluster"),
}
"""Sample -> the journal's address, and what is packed."""
TAKEN_BACK: Final = {
    "taken-back-directory": (f"file://{HOME}/taken-back", HOME / "taken-back"),
    "taken-back-on-embedded": (f"bk+embedded://{HOME}/others?bookies=3&name=sample", HOME / "others"),
}
"""The same, with edits whose ids were used twice."""
EDITS: Final = 30
SNAPSHOT_AT: Final = 15
SNAPSHOT: Final = bytes(range(256)) * 20
_ROLLS: Final = (10, 20)
OTHERS_AT: Final = 21
"""From here on edits were discarded, and others have got their ids."""
OTHERS: Final = 26
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


def other(txid: int) -> Op:
    return Op(7, txid, b"other %d" % txid, None)


async def write_discarded(uri: str) -> EditLog:
    """A journal whose last ten edits were discarded; others, a snapshot and an offer have got their ids. Returns the
    log with its last segment open."""
    await (await write_journal(uri)).close()
    async with await open_writer(uri) as writer:
        await capability(writer, Discard).discard_from(OTHERS_AT)  # type: ignore[type-abstract]
    log = await EditLog.open(uri, owner="sample")
    for txid in range(OTHERS_AT, OTHERS + 1):
        await log.log(other(txid).body, other(txid).opcode)
    await log.save_snapshot(OTHERS_AT + 1, [SNAPSHOT])
    async with await open_snapshots(uri) as store:
        await store.offer(OTHERS_AT + 2, [b"offered"], epoch=log.token.epoch)
        await store.offer(OTHERS_AT + 3, [b"a state that no journal has"], epoch=1)
    return log


async def read_discarded(uri: str) -> None:
    """What was discarded is not there, and whoever has it is told; what has its ids is."""
    async with await open_reader(uri) as reader:
        wanted = [edit(txid) for txid in range(1, OTHERS_AT)] + [other(txid) for txid in range(OTHERS_AT, OTHERS)]
        assert [op async for op in read_ops(reader, 1, OTHERS - 1)] == wanted
        assert (await reader.discarded()).covers(OTHERS_AT, 1)
        try:
            await anext(read_runs(reader, OTHERS_AT + 1, epoch=1))
        except EditsDiscardedError:
            pass
        else:
            raise AssertionError("nobody was told")
    async with await EditLog.open(uri, owner="later") as log, await open_snapshots(uri) as store:
        kept = [(info.at, info.epoch) for info in await store.list()]
        assert [at for at, _ in kept] in ([SNAPSHOT_AT, OTHERS_AT + 1], [SNAPSHOT_AT, OTHERS_AT + 1, OTHERS_AT + 2])
        assert kept[0][1] == 0 and all(epoch > 1 for _, epoch in kept[1:])
        await log.adopt_snapshots()
        newest = await store.load()
        assert newest is not None and (newest[0].at, newest[1]) == (OTHERS_AT + 2, b"offered")
        ops = [op async for op in log.read(OTHERS_AT)]
        assert ops[: OTHERS - OTHERS_AT + 1] == [other(txid) for txid in range(OTHERS_AT, OTHERS + 1)]
        assert await log.log(_MORE) == OTHERS_AT + len(ops)
