"""The contract of journal backends: upgrades, which are rolled back or finalized."""

from __future__ import annotations

from dataclasses import replace

import pytest

from journal_manager import (
    JournalFencedError,
    NamespaceMismatchError,
    SegmentExistsError,
    UnsupportedCapabilityError,
    UpgradeError,
    capability,
    format_journal,
)
from journal_manager.journals.capabilities import Discard, Upgrade
from journal_manager.testing.journal import NAMESPACE, Journal, ends, write_segment


class UpgradeContract:
    """An upgrade goes back to what it began with, or becomes final."""

    async def test_an_upgrade_is_rolled_back_or_finalized_or_it_cannot(self, journal: Journal) -> None:
        await format_journal(journal.uri, namespace=NAMESPACE, **journal.options)
        writer = await journal.writer()
        if not isinstance(writer, Upgrade):
            with pytest.raises(UnsupportedCapabilityError):
                capability(writer, Upgrade)  # type: ignore[type-abstract]
            return
        for first in (1, 4):
            await write_segment(writer, first, first + 2)
        await writer.save_snapshot(6, [b"before"])
        newer = replace(NAMESPACE, layout_version=NAMESPACE.layout_version + 1)
        with pytest.raises(UpgradeError):
            await writer.roll_back()
        with pytest.raises(NamespaceMismatchError):
            await writer.begin_upgrade(replace(newer, cluster_id="another"))
        await writer.begin_upgrade(newer)
        await writer.begin_upgrade(newer)
        writer = await journal.writer(namespace=newer)
        assert isinstance(writer, Upgrade) and isinstance(writer, Discard)
        await write_segment(writer, 7, 9)
        with pytest.raises(UpgradeError):
            await writer.begin_upgrade(replace(newer, layout_version=newer.layout_version + 1))
        await writer.save_snapshot(9, [b"since"])
        store = await journal.snapshots()
        await store.offer(8, [b"offered since"])
        assert await writer.purge(9) == (), "what is from before stays"
        await writer.delete_snapshot(6)
        with pytest.raises(UpgradeError):
            await writer.discard_from(4)
        assert ends(await writer.roll_back()) == [(7, 9)]
        assert ends(await writer.segments()) == [(1, 3), (4, 6)] and writer.durable_txid == 6
        found = await store.load()
        assert found is not None and (found[0].at, found[1]) == (6, b"before")
        assert await writer.adopt_snapshots() == ()
        with pytest.raises(UpgradeError):
            await writer.roll_back()

        await writer.begin_upgrade(newer)
        with pytest.raises(SegmentExistsError, match="open the journal anew"):
            await writer.start_segment(7, 1)
        writer = await journal.writer()
        assert isinstance(writer, Upgrade)
        await write_segment(writer, 7, 9)
        await writer.finalize_upgrade()
        await writer.finalize_upgrade()
        with pytest.raises(UpgradeError):
            await writer.roll_back()
        assert ends(await writer.purge(7)) == [(1, 3), (4, 6)]
        with pytest.raises(UpgradeError, match="step back"):
            await writer.begin_upgrade(NAMESPACE)
        segment = await writer.start_segment(10, 1)
        with pytest.raises(UpgradeError, match="in progress"):
            await writer.begin_upgrade(replace(newer, layout_version=9))
        await segment.abort()
        again = await journal.writer()
        assert isinstance(again, Upgrade)
        for step in (writer.begin_upgrade(newer), writer.finalize_upgrade(), writer.roll_back()):
            with pytest.raises(JournalFencedError):
                await step

    async def test_an_upgrade_comes_back_to_the_snapshots_it_began_with(self, journal: Journal) -> None:
        """A snapshot of the new version at an id from before the upgrade took the place of the former version's, and
        was the newest one after the roll-back: the former version could not read its state any more."""
        await format_journal(journal.uri, namespace=NAMESPACE, **journal.options)
        writer = await journal.writer()
        if not isinstance(writer, Upgrade):
            return
        await write_segment(writer, 1, 3)
        await writer.save_snapshot(3, [b"before"])
        await write_segment(writer, 4, 6)
        newer = replace(NAMESPACE, layout_version=NAMESPACE.layout_version + 1)
        await writer.begin_upgrade(newer)
        writer = await journal.writer(namespace=newer)
        assert isinstance(writer, Upgrade)
        store = await journal.snapshots()
        for at in (3, 6):
            with pytest.raises(UpgradeError, match="from before the upgrade"):
                await writer.save_snapshot(at, [b"of the new version"])
        await store.offer(6, [b"of the new version"])
        assert await writer.adopt_snapshots() == ()
        await store.offer(6, [b"of the new version, not looked at before the roll-back"])
        await writer.roll_back()
        assert await writer.adopt_snapshots() == ()
        found = await store.load()
        assert found is not None and (found[0].at, found[1]) == (3, b"before")

        await writer.save_snapshot(6, [b"of the former version"])
        await writer.begin_upgrade(newer)
        writer = await journal.writer(namespace=newer)
        assert isinstance(writer, Upgrade)
        await writer.finalize_upgrade()
        await writer.save_snapshot(6, [b"of the new version"])
        found = await store.load()
        assert found is not None and (found[0].at, found[1]) == (6, b"of the new version")
