"""What an accepted loss changes in the store (M10)."""

from __future__ import annotations

import pytest

from bookkeeper.errors import IllegalOperationError
from bookkeeper.meta import Metadata, init_cluster_in
from bookkeeper.meta.acceptance import UNSEEN, accept
from bookkeeper.meta.records.layout import Layout
from bookkeeper.meta.records.lineage import AcceptedLoss, Lineage, StoreMove
from bookkeeper.meta.store import MetadataStore
from tests.bookkeeper.meta.records.test_ledgers import NEW
from tests.bookkeeper.meta.services import MemoryService, seams

WEEK = 7 * 24 * 3600


async def cluster(store: MetadataStore, layout: Layout = Layout.HIERARCHICAL) -> Metadata:
    await init_cluster_in(store, seams(), layout=layout)
    return await Metadata.over(store, seams())


async def accepted(metadata: Metadata, *used: int, unasked: bool = False) -> int:
    return await accept(metadata, new_id="aa", used=used, keep_s=WEEK, unasked=unasked)


@pytest.mark.rule("M6", "M10")
@pytest.mark.parametrize("layout", [Layout.HIERARCHICAL, Layout.FLAT])
async def test_the_generator_goes_on_above_what_is_in_use(memory_service: MemoryService, layout: Layout) -> None:
    metadata = await cluster(await memory_service.connect(), layout)
    await metadata.ledgers.create(NEW)
    first = await accepted(metadata, 700, 3)
    again = await Metadata.over(await memory_service.connect(), seams())
    new, _ = await again.ledgers.create(NEW)
    assert 700 < first <= new < 710
    assert again.lineage.copies == (StoreMove("aa", again.lineage.copies[0].transaction, AcceptedLoss(700, WEEK)),)


@pytest.mark.rule("M6", "M10")
@pytest.mark.parametrize(
    ("used", "unasked", "first"),
    [
        ([10_000_000], False, 1 << 32),
        ([7 << 32 | 5], False, 8 << 32),
        ([3], True, (1 + UNSEEN) << 32),
        ([2**63 - 1], False, 1 << 32),
    ],
    ids=["many", "long", "not everybody asked", "somebody chose the last"],
)
async def test_where_they_cannot_be_counted_up_to_long_ids_begin(
    memory_service: MemoryService, used: list[int], unasked: bool, first: int
) -> None:
    metadata = await cluster(await memory_service.connect())
    assert await accepted(metadata, *used, unasked=unasked) == first
    again = await Metadata.over(await memory_service.connect(), seams())
    new, _ = await again.ledgers.create(NEW)
    assert first <= new < first + 10


async def test_a_flat_cluster_needs_every_bookie(memory_service: MemoryService) -> None:
    metadata = await cluster(await memory_service.connect(), Layout.FLAT)
    with pytest.raises(IllegalOperationError, match="every bookie must be asked"):
        await accepted(metadata, 3, unasked=True)
    assert (await Metadata.over(await memory_service.connect(), seams())).lineage.copies == ()


@pytest.mark.rule("M10")
async def test_losses_add_up_and_those_who_saw_more_before_them_are_let_in(memory_service: MemoryService) -> None:
    metadata = await cluster(await memory_service.connect())
    await accepted(metadata)
    again = await Metadata.over(await memory_service.connect(), seams())
    await accept(again, new_id="bb", used=[], keep_s=0, unasked=False)
    last = (await Metadata.over(await memory_service.connect(), seams())).lineage
    assert [copy.id for copy in last.copies] == ["aa", "bb"]
    for mark in (b"999999999\n", b"999999999 aa\n", b"999999999 lost-before-the-last\n"):
        assert last.must_have_seen(mark) == 0
    assert last.must_have_seen(b"12 bb\n") == 12
    assert Lineage.decode(last.encode()) == last
