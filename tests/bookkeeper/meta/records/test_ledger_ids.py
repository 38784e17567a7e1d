from __future__ import annotations

import asyncio
import random

import pytest

from bookkeeper.errors import MetadataError
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.ledger.metadata import LedgerMetadata
from bookkeeper.ledger.quorum import QuorumSpec
from bookkeeper.meta.records import ledger_ids
from bookkeeper.meta.records.layout import Layout
from bookkeeper.meta.records.ledger_ids import AHEAD_MAX, ROW_MIN, LedgerIds
from bookkeeper.meta.records.ledgers import Ledgers
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store import MetadataStore
from bookkeeper.meta.stores.memory import Fate, MemoryCluster
from bookkeeper.meta.stores.tree import TreeNode
from tests.bookkeeper.meta.services import FINE, REPLY_LOST, Losing, MemoryService, Recording, load
from tests.contracts.metadata_store import until

LONG = [Layout.HIERARCHICAL, Layout.LONG_HIERARCHICAL]
PATHS = Paths()
NEW = LedgerMetadata.create(QuorumSpec(ensemble_size=1, write_quorum=1, ack_quorum=1), [BookieId("b1")], password=b"")


def made(cluster: MemoryCluster, path: str, number: int) -> None:
    """Pretend that ``number`` children were ever made under ``path``."""
    node = cluster._tree.nodes[path]
    cluster._tree.nodes[path] = TreeNode(*(node.value, node.version, 0, node.transaction, None), number)


async def take(store: MetadataStore, layout: Layout, count: int) -> list[int]:
    ids = LedgerIds(store, PATHS, layout)
    return [await ids.next() for _ in range(count)]


@pytest.mark.rule("M6")
async def test_ids_count_up_and_leave_nothing_behind(memory_service: MemoryService) -> None:
    store = await memory_service.connect()
    ids = LedgerIds(store, PATHS, Layout.HIERARCHICAL)
    assert [await ids.next() for _ in range(3)] == [0, 1, 2]
    await asyncio.gather(*ids._forgetting)
    assert await store.children(PATHS.id_generator) == []


@pytest.mark.rule("M6")
async def test_an_id_does_not_wait_for_its_value_to_be_removed(memory_service: MemoryService) -> None:
    store = await memory_service.connect()
    memory_service.cluster.interference = Losing(delete=[Fate(delay_before_s=3600)])
    ids = LedgerIds(store, PATHS, Layout.HIERARCHICAL)
    assert [await ids.next(), await ids.next()] == [0, 1]
    for removal in list(ids._forgetting):
        removal.cancel()


async def test_values_of_one_turn_are_removed_by_one_request_and_one_by_one_if_one_is_gone(
    memory_service: MemoryService,
) -> None:
    store = await memory_service.connect()
    ids = LedgerIds(store, PATHS, Layout.HIERARCHICAL)
    for number in (5, 0):
        memory_service.cluster.interference = seen = Recording()
        await asyncio.gather(*(ids.generate() for _ in range(number + 1)))
        await asyncio.gather(*ids._forgetting)
        assert (seen.kinds.count("multi"), seen.kinds.count("delete")) == ((1, 0) if number else (0, 1))
        assert await store.children(PATHS.id_generator) == []
    kept = [await store.create(f"{PATHS.id_generator}/ID-", ephemeral=True, sequential=True) for _ in range(3)]
    await store.delete(kept[1][0], None)
    for path, _ in kept:
        ids._forget_soon(path)
    await asyncio.gather(*ids._forgetting)
    assert await store.children(PATHS.id_generator) == []


@pytest.mark.parametrize("layout", LONG)
async def test_who_begins_with_long_ids_is_noticed_by_all(memory_service: MemoryService, layout: Layout) -> None:
    store, other = await memory_service.connect(), await memory_service.connect()
    ids = LedgerIds(store, PATHS, layout)
    assert await ids.next() == 0
    await other.create(PATHS.long_id_generator)
    await until(lambda: not ids._known)
    assert [*await asyncio.gather(ids.next(), ids.next())] == [1 << 32, (1 << 32) + 1]


@pytest.mark.rule("M6")
async def test_no_id_is_given_twice(memory_service: MemoryService) -> None:
    stores = [await memory_service.connect() for _ in range(3)]
    taken = await asyncio.gather(*(take(store, Layout.HIERARCHICAL, ROW_MIN) for store in stores))
    assert sorted(number for numbers in taken for number in numbers) == list(range(3 * ROW_MIN))


@pytest.mark.rule("M6")
async def test_who_asks_in_a_row_gets_ids_ahead_and_no_two_clients_the_same(memory_service: MemoryService) -> None:
    stores = [await memory_service.connect() for _ in range(3)]
    taken = await asyncio.gather(*(take(store, Layout.HIERARCHICAL, 100) for store in stores))
    assert len({number for numbers in taken for number in numbers}) == 300


async def test_the_first_ids_are_not_taken_ahead_and_nobody_waits_for_the_later_ones(
    memory_service: MemoryService,
) -> None:
    store = await memory_service.connect()
    ids = LedgerIds(store, PATHS, Layout.HIERARCHICAL)
    assert [await ids.next() for _ in range(ROW_MIN)] == list(range(ROW_MIN))
    assert not ids._ahead
    for _ in range(40):
        await ids.next()
        if ids._taking is not None:
            await ids._taking
    memory_service.cluster.interference = seen = Recording()
    for _ in range(AHEAD_MAX // 4):
        await ids.next()
    assert ids.takes_ahead and len(ids._ahead) <= AHEAD_MAX
    assert seen.kinds.count("create") <= 1, "they come by one request"
    assert ids.greatest >= max(ids._ahead)


@pytest.mark.rule("M10")
async def test_an_id_that_is_generated_now_is_greater_than_those_that_were_taken_ahead(
    memory_service: MemoryService,
) -> None:
    ids = LedgerIds(await memory_service.connect(), PATHS, Layout.HIERARCHICAL)
    for _ in range(30):
        await ids.next()
    assert ids._taking is not None or ids._ahead
    if ids._taking is not None:
        await ids._taking
    assert await ids.generate() > max(ids._ahead)


async def test_after_a_pause_a_row_begins_anew(memory_service: MemoryService, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = LedgerIds(await memory_service.connect(), PATHS, Layout.HIERARCHICAL)
    monkeypatch.setattr(ledger_ids, "ROW_S", 0.0)
    assert [await ids.next() for _ in range(30)] == list(range(30))
    assert not ids._ahead and ids._taking is None


async def test_who_cannot_take_ids_ahead_takes_them_one_by_one(memory_service: MemoryService) -> None:
    store = await memory_service.connect()
    ids = LedgerIds(store, PATHS, Layout.HIERARCHICAL)
    for _ in range(ROW_MIN):
        await ids.next()
    memory_service.cluster.interference = Losing(create=[FINE, *[REPLY_LOST] * 5])
    numbers = [await ids.next() for _ in range(40)]
    assert len(set(numbers)) == 40 and min(numbers) >= ROW_MIN


@pytest.mark.parametrize("layout", [Layout.FLAT, Layout.LEGACY_HIERARCHICAL])
async def test_a_layout_with_few_ids_takes_none_ahead(memory_service: MemoryService, layout: Layout) -> None:
    store = await memory_service.connect()
    await store.create(PATHS.id_generator, parents=True)
    ids = LedgerIds(store, PATHS, layout)
    for _ in range(3 * ROW_MIN):
        await ids.next()
    assert not ids.takes_ahead and not ids._ahead and ids._taking is None


async def test_a_flat_cluster_counts_every_child_of_its_root(memory_service: MemoryService) -> None:
    store = await memory_service.connect()
    for name in ("available", "INSTANCEID", "LAYOUT", "cookies"):
        await store.create(f"{PATHS.root}/{name}", parents=True)
    ids = LedgerIds(store, PATHS, Layout.FLAT)
    taken = []
    for _ in range(3):
        taken.append(await ids.next())
        await store.create(Layout.FLAT.ledger_path(PATHS.root, taken[-1]))
    assert taken == [4, 6, 8]


@pytest.mark.rule("M6")
@pytest.mark.parametrize("layout", LONG)
async def test_a_lost_reply_skips_a_number(memory_service: MemoryService, layout: Layout) -> None:
    store = await memory_service.connect()
    memory_service.cluster.interference = Losing(create=[REPLY_LOST], delete=[REPLY_LOST])
    assert await take(store, layout, 2) == [1, 2]


@pytest.mark.parametrize("layout", LONG)
async def test_long_ids_come_once_their_generator_exists(memory_service: MemoryService, layout: Layout) -> None:
    store = await memory_service.connect()
    await store.create(PATHS.long_id_generator, parents=True)
    assert await take(store, layout, 2) == [4294967296, 4294967297]
    await store.create(f"{PATHS.long_id_generator}/HOB-0000000287")
    assert await take(store, layout, 2) == [1232655613952, 1232655613953]
    assert await store.children(PATHS.long_id_generator) == ["HOB-0000000001", "HOB-0000000287"]


@pytest.mark.parametrize("count", [2**31 - 1, -(2**31)])
async def test_used_up_short_ids_are_followed_by_long_ones(memory_service: MemoryService, count: int) -> None:
    store = await memory_service.connect()
    await store.create(PATHS.id_generator, parents=True)
    made(memory_service.cluster, PATHS.id_generator, count)
    assert await take(store, Layout.HIERARCHICAL, 1) == [1 << 32]
    assert await take(store, Layout.HIERARCHICAL, 1) == [(1 << 32) + 1]


async def test_used_up_low_bits_are_followed_by_the_next_high_ones(memory_service: MemoryService) -> None:
    store = await memory_service.connect()
    for high in (1, 2, 3):
        await store.create(f"{PATHS.long_id_generator}/HOB-{high:010d}", parents=True)
    made(memory_service.cluster, f"{PATHS.long_id_generator}/HOB-0000000003", 2**31 - 1)
    assert await take(store, Layout.HIERARCHICAL, 1) == [4 << 32]
    assert await store.children(PATHS.long_id_generator) == ["HOB-0000000002", "HOB-0000000003", "HOB-0000000004"]


@pytest.mark.parametrize("layout", [Layout.FLAT, Layout.LEGACY_HIERARCHICAL])
async def test_a_short_layout_runs_out_of_ids(memory_service: MemoryService, layout: Layout) -> None:
    store = await memory_service.connect()
    await store.create(PATHS.id_generator, parents=True)
    made(memory_service.cluster, PATHS.root if layout is Layout.FLAT else PATHS.id_generator, 2**31 - 1)
    with pytest.raises(MetadataError, match="no ledger ids left"):
        await take(store, layout, 1)


@pytest.mark.rule("M6")
@pytest.mark.parametrize("layout", LONG)
@pytest.mark.parametrize(("dump", "high"), [("idgen-long", 1), ("idgen-long-hob287", 287)])
async def test_long_ids_are_those_that_java_made_of_the_same_tree(
    memory_service: MemoryService, layout: Layout, dump: str, high: int
) -> None:
    """The captured tree without its last two ledgers, to which ours then come: the captured tree again."""
    store = await memory_service.connect()
    name = layout.name.lower().replace("_", "")
    captured = {f"/ledgers{node['path']}".rstrip("/") for node in load(f"zookeeper/{dump}-{name}.json")["nodes"]}
    news = [LedgerId((high << 32) + low) for low in (0, 1)]
    last = {layout.ledger_path(PATHS.root, ledger) for ledger in news}
    assert last < captured
    for path in sorted(captured - last):
        if high != 1 or "HOB" not in path:
            await store.create(path)
    ledgers = Ledgers(store, PATHS, layout, random.Random(7))
    assert [(await ledgers.create(NEW))[0] for _ in news] == news
    await asyncio.gather(*ledgers._ids._forgetting)
    assert {path for path in memory_service.cluster.dump() if path != "/"} == captured
