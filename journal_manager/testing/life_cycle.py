"""The contract of journal backends: how a journal begins and ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from journal_manager import (
    NOTHING,
    JournalClosedError,
    JournalConfigError,
    JournalError,
    JournalExistsError,
    JournalFencedError,
    JournalNotFormattedError,
    NamespaceInfo,
    NamespaceMismatchError,
    TxId,
    format_journal,
    has_data,
)
from journal_manager.testing.journal import NAMESPACE, Journal, batch, write_segment


class LifeCycleContract:
    """A journal is formatted, opened and closed."""

    async def test_nothing_can_be_opened_before_it_is_formatted(self, journal: Journal) -> None:
        assert not await has_data(journal.uri, **journal.options)
        with pytest.raises(JournalNotFormattedError):
            await journal.reader()
        with pytest.raises(JournalNotFormattedError):
            await journal.writer(create=False)

    async def test_a_writer_makes_the_journal_if_there_is_none(self, journal: Journal) -> None:
        writer = await journal.writer()
        assert writer.recovery.last_txid == NOTHING
        assert await writer.segments() == ()
        assert not await has_data(journal.uri, **journal.options)

    async def test_format_refuses_to_destroy_edits_unless_forced(self, journal: Journal) -> None:
        await format_journal(journal.uri, namespace=NAMESPACE, **journal.options)
        writer = await journal.writer(namespace=NAMESPACE)
        await write_segment(writer, 1, 3)
        await writer.start_segment(TxId(4), 1)
        await writer.close()
        assert await has_data(journal.uri, **journal.options)
        with pytest.raises(JournalExistsError):
            await format_journal(journal.uri, **journal.options)
        await format_journal(journal.uri, namespace=NAMESPACE, force=True, **journal.options)
        again = await journal.writer()
        assert await again.segments() == ()
        await write_segment(again, 1, 1)

    @pytest.mark.rule("C5")
    async def test_a_forced_format_fences_the_writer(self, journal: Journal) -> None:
        old = await journal.writer()
        segment = await old.start_segment(TxId(1), 1)
        await segment.append(batch(1))
        await format_journal(journal.uri, force=True, **journal.options)
        with pytest.raises(JournalFencedError):
            await segment.append(batch(2))
        with pytest.raises(JournalFencedError):
            await old.ensure_owner()

    async def test_several_that_format_at_once_leave_an_empty_journal(self, journal: Journal) -> None:
        writer = await journal.writer()
        for first in range(1, 21):
            await write_segment(writer, first, first)
        results = await asyncio.gather(
            *(format_journal(journal.uri, force=True, **journal.options) for _ in range(8)), return_exceptions=True
        )
        assert all(result is None or isinstance(result, JournalError) for result in results), results
        assert None in results
        again = await journal.writer()
        assert await again.segments() == ()
        await write_segment(again, 1, 1)

    @pytest.mark.parametrize("changed", [{"namespace_id": 8}, {"cluster_id": "x"}, {"pool_id": "x"}])
    async def test_another_namespace_is_refused(self, journal: Journal, changed: dict[str, Any]) -> None:
        await format_journal(journal.uri, namespace=NAMESPACE, **journal.options)
        other = NamespaceInfo(**{"namespace_id": 7, "cluster_id": "c", "pool_id": "p", **changed})
        with pytest.raises(NamespaceMismatchError):
            await journal.writer(namespace=other)
        with pytest.raises(NamespaceMismatchError):
            await journal.reader(namespace=other)
        await journal.reader(namespace=NAMESPACE)

    async def test_an_unknown_option_is_refused(self, journal: Journal) -> None:
        with pytest.raises(JournalConfigError, match="colour"):
            await journal.writer(colour="red")

    async def test_close_is_idempotent_and_final(self, journal: Journal) -> None:
        writer = await journal.writer()
        await writer.close()
        await writer.close()
        with pytest.raises(JournalClosedError):
            await writer.segments()
        with pytest.raises(JournalClosedError):
            await writer.start_segment(TxId(1), 1)
