"""A record that only grows is spoken of long before the metadata store would refuse it."""

from __future__ import annotations

import logging

import pytest

from journal_manager import (
    EditLog,
    JournalFailedError,
    JournalFullError,
    NamespaceInfo,
    SegmentInfo,
    TxId,
    open_reader,
    open_writer,
)
from journal_manager.backends.bookkeeper import node_size
from journal_manager.backends.bookkeeper.node_size import NODE_BYTES_MAX, NODE_BYTES_WARNED, NodeSize
from journal_manager.journals.capabilities import DescribableReader, capability
from journal_manager.journals.chain import Chain
from tests.journal_manager.backends.bookkeeper.fake import Cluster


def test_it_warns_once_from_half_on_and_refuses_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    size = NodeSize("edits")
    size.begins(NODE_BYTES_WARNED - 1, 10)
    assert not caplog.records
    for each in (NODE_BYTES_WARNED, NODE_BYTES_MAX):
        size.begins(each, 11)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "50 % full" in caplog.text and "bk journal purge" in caplog.text
    with pytest.raises(JournalFullError, match=r"\(11 of them\), and is full .*bk journal purge"):
        size.begins(NODE_BYTES_MAX + 1, 12)
    size.begins(100, 1)
    size.begins(NODE_BYTES_WARNED, 11)
    assert len(caplog.records) == 2, "it was purged meanwhile"


def test_a_full_record_can_still_be_claimed_and_its_segment_ended_below_the_stores_limit() -> None:
    chain = Chain(NamespaceInfo()).claim("o", "n")
    chain = chain.begin(chain.token, SegmentInfo(TxId(1), None, 1, 1, "1" * (NODE_BYTES_MAX - 400)))
    assert len(chain.encode()) <= NODE_BYTES_MAX
    chain = chain.claim("o" * 1000, "n" * 100)
    chain = chain.finish(chain.token, TxId(1), TxId(2**63 - 1))
    assert len(chain.encode()) < 1_000_000


async def test_a_journal_that_is_never_purged_is_refused_a_segment_and_goes_on_after_a_purge(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its record grew with each segment until the store took it no more, and then no segment could end either."""
    cluster = Cluster()
    monkeypatch.setattr(node_size, "NODE_BYTES_MAX", 2000)
    monkeypatch.setattr(node_size, "NODE_BYTES_WARNED", 1000)
    log = await EditLog.open("bk:edits", client=cluster.client())
    with pytest.raises(JournalFailedError, match="no segment can begin") as caught:
        for _ in range(100):
            await log.log(b"x")
            await log.roll()
    assert isinstance(caught.value.__cause__, JournalFullError)
    assert sum("% full" in record.getMessage() for record in caplog.records) == 1
    ledgers, last = len(cluster.ledgers), log.durable_txid
    await log.abort()
    async with await open_reader("bk:edits", client=cluster.client()) as reader:
        assert len(await reader.segments()) == ledgers, "no ledger was made for nothing"
        found = await capability(reader, DescribableReader).describe()  # type: ignore[type-abstract]
        assert found.node_bytes is not None and 1800 < found.node_bytes <= 2000
        assert found.node_bytes_max == NODE_BYTES_MAX
    async with await open_writer("bk:edits", client=cluster.client()) as writer:
        await writer.purge(last)
    async with await EditLog.open("bk:edits", client=cluster.client()) as log:
        assert await log.log(b"goes on") == last + 1
