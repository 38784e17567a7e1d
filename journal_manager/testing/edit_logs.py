"""The contract of journal backends: an edit log on the backend."""

from __future__ import annotations

import asyncio

import pytest

from journal_manager import (
    JournalFailedError,
    JournalFencedError,
    OpTooLargeError,
    TxId,
)
from journal_manager.testing.journal import Journal, body, ends


class EditLogContract:
    """Edits that were acknowledged are there, whatever became of the log."""

    @pytest.mark.rule("C7")
    async def test_log_numbers_edits_densely_across_tasks_and_openings(self, journal: Journal) -> None:
        log = await journal.log()

        async def client(name: int) -> list[int]:
            return [await log.log(b"%d %d" % (name, i)) for i in range(10)]

        given = await asyncio.gather(*(client(name) for name in range(8)))
        assert sorted(txid for each in given for txid in each) == list(range(1, 81))
        assert all(each == sorted(each) for each in given)
        await log.close()
        again = await journal.log()
        assert again.next_txid == 81 and again.recovery.finalized == ()
        bodies = {op.body: op.txid async for op in again.read(TxId(1))}
        assert bodies == {b"%d %d" % (n, i): txid for n, each in enumerate(given) for i, txid in enumerate(each)}

    async def test_log_rolls_and_purges(self, journal: Journal) -> None:
        log = await journal.log()
        for txid in range(1, 4):
            assert await log.log(body(txid), txid) == txid
            final = await log.roll()
            assert final is not None and (final.first, final.last) == (txid, txid)
        assert await log.roll() is None
        assert ends(await log.purge(TxId(3))) == [(1, 1), (2, 2)]
        assert [op.txid async for op in log.read(TxId(3))] == [3]

    async def test_log_rolls_by_itself_before_a_segment_grows_too_long(self, journal: Journal) -> None:
        log = await journal.log(segment_bytes=1000)
        for _ in range(4):
            await log.log(bytes(300))
        assert ends(await log.segments()) == [(1, 3), (4, None)]

    @pytest.mark.rule("C5")
    async def test_log_is_told_that_it_was_fenced_and_stays_so(self, journal: Journal) -> None:
        old = await journal.log("old")
        await old.log(b"kept")
        new = await journal.log("new")
        with pytest.raises(JournalFencedError) as caught:
            await old.log(b"refused")
        assert caught.value.epoch == old.token.epoch
        with pytest.raises(JournalFencedError):
            old.log(b"refused at once")
        with pytest.raises(JournalFencedError):
            await old.sync()
        assert [op.body async for op in new.read(TxId(1))] == [b"kept"]
        assert await new.log(b"next") == 2

    async def test_log_refuses_what_cannot_be_durable_at_once_and_goes_on(self, journal: Journal) -> None:
        log = await journal.log(max_batch_bytes=1000)
        with pytest.raises(OpTooLargeError):
            log.log(bytes(1000))
        assert await log.log(bytes(900)) == 1

    async def test_log_aborted_without_waiting_keeps_what_was_acknowledged(self, journal: Journal) -> None:
        log = await journal.log()
        await log.log(b"1")
        unknown = log.log(b"2")
        await log.abort()
        with pytest.raises(JournalFailedError):
            await unknown
        again = await journal.log()
        bodies = [op.body async for op in again.read(TxId(1))]
        assert bodies[0] == b"1" and bodies[1:] in ([], [b"2"])
