"""Steps with a whole store: each can be repeated, and none takes more at once than a store allows."""

from __future__ import annotations

import pytest

from bookkeeper.errors import SessionsLiveError
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store import Create
from bookkeeper.meta.store_steps import (
    BATCH_BYTES,
    BATCH_OPERATIONS,
    ClusterLocation,
    batches,
    burn_ids,
    probe,
    refuse_live,
    settle,
    walk,
)
from tests.bookkeeper.meta.services import REPLY_LOST, Losing, MemoryService


def test_a_batch_has_so_many_operations_and_bytes_and_no_operation_is_left_out() -> None:
    small = [Create(f"/{number}") for number in range(2 * BATCH_OPERATIONS + 1)]
    assert [len(batch) for batch in batches(small)] == [BATCH_OPERATIONS, BATCH_OPERATIONS, 1]
    large = [Create(f"/{number}", bytes(BATCH_BYTES // 2 + 1)) for number in range(3)]
    assert [len(batch) for batch in batches(large)] == [1, 1, 1]
    assert list(batches([])) == []


async def test_a_walk_has_parents_first_and_leaves_out_roots_that_are_not_there() -> None:
    store = await MemoryService().connect()
    for path in ("/a/b/c", "/a/d"):
        await store.create(path, parents=True)
    assert [path async for path in walk(store, ("/a", "/none"))] == ["/a", "/a/b", "/a/d", "/a/b/c"]


async def test_ids_are_used_up_to_a_number_and_no_further() -> None:
    store = await MemoryService().connect()
    await store.create("/ids")
    first = await probe(store, "/ids")
    last = await burn_ids(store, "/ids", first, first + 7)
    assert last >= first + 7
    assert await probe(store, "/ids") == last + 1
    assert await burn_ids(store, "/ids", last, last) == last, "nothing is left to use up"


async def test_a_transaction_whose_reply_was_lost_is_done_once() -> None:
    service = MemoryService()
    store = await service.connect()
    service.cluster.interference = Losing(multi=[REPLY_LOST])
    await settle(store, [Create("/a", b"1")])
    assert (await store.get("/a")).value == b"1"


async def test_a_cluster_in_which_somebody_is_registered_is_refused_by_name() -> None:
    service = MemoryService()
    mine, other = await service.connect(), await service.connect()
    place = ClusterLocation(mine, Paths("/ledgers"), "here")
    await mine.create("/ledgers/available", parents=True)
    await refuse_live(place)
    await other.create("/ledgers/available/b1", ephemeral=True)
    with pytest.raises(SessionsLiveError, match="/ledgers/available/b1"):
        await refuse_live(place)
