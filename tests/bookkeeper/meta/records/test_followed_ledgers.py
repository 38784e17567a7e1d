"""The metadata of ledgers for who keeps all of them; the console's tests count what is asked."""

from __future__ import annotations

import random

import pytest

from bookkeeper.errors import NoSuchKeyError, NoSuchLedgerError
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.ledger.metadata import LedgerMetadata
from bookkeeper.ledger.quorum import QuorumSpec
from bookkeeper.meta.records.layout import SHORT_MAX, Layout
from bookkeeper.meta.records.ledgers import Ledgers
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.stores.memory import MemoryCluster

NEW = LedgerMetadata.create(QuorumSpec(ensemble_size=1, write_quorum=1, ack_quorum=1), [BookieId("a:1")])
IDS = [LedgerId(number) for number in (0, 7, 9999, 10_000, 123_456_789)]


@pytest.mark.parametrize("layout", Layout)
async def test_in_every_layout_what_was_written_is_named_by_its_ledger(layout: Layout) -> None:
    store = MemoryCluster().connect()
    ledgers = Ledgers(store, Paths(), layout, random.Random(1))
    ids = IDS if layout in (Layout.FLAT, Layout.LEGACY_HIERARCHICAL) else [*IDS, LedgerId(SHORT_MAX), LedgerId(2**62)]
    followed = ledgers.follow()
    assert await followed.changed() is None
    for ledger_id in ids:
        await ledgers.create(NEW, ledger_id)
    changed = await followed.changed()
    assert changed is not None and changed[0] == set(ids)
    assert [(await followed.read(ledger_id)).spec for ledger_id in ids] == [NEW.spec] * len(ids)
    await ledgers.delete(ids[1], grace_s=60)
    changed = await followed.changed()
    assert changed is not None and changed[1] == {ids[1]}
    assert (await followed.read_deleted(ids[1])).ledger_id == ids[1]
    with pytest.raises(NoSuchLedgerError):
        await followed.read(ids[1])
    with pytest.raises(NoSuchKeyError):
        await followed.read_deleted(ids[0])
    followed.close()


@pytest.mark.parametrize("layout", Layout)
@pytest.mark.parametrize(
    "path", ["/ledgers/cookies/b1", "/ledgers/00/0000", "/ledgers/LAYOUT", "/ledgers/00/00000/L0007"]
)
def test_other_paths_are_no_ledgers(layout: Layout, path: str) -> None:
    assert layout.ledger_at("/ledgers", path) is None
