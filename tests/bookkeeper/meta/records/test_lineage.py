from __future__ import annotations

import json

import pytest

from bookkeeper.errors import ClusterMovedError, MetadataFormatError, MetadataRolledBackError
from bookkeeper.meta.cluster import Metadata, init_cluster_in
from bookkeeper.meta.records.lineage import Lineage, StoreMove, read
from bookkeeper.meta.records.paths import Paths
from tests.bookkeeper.meta.services import MemoryService, seams

MADE = Lineage()
ONCE = Lineage((StoreMove("aa", 100),))
TWICE = Lineage((StoreMove("aa", 100), StoreMove("bb", 50)))


@pytest.mark.parametrize("lineage", [MADE, ONCE, TWICE])
def test_decoding_undoes_encoding(lineage: Lineage) -> None:
    assert Lineage.decode(lineage.encode()) == lineage


@pytest.mark.parametrize("data", [b"", b"{}x", b"[1]", b"[[1]]", b'[["a", "b"]]', b"\xff"])
def test_what_is_no_record_is_refused(data: bytes) -> None:
    with pytest.raises(MetadataFormatError):
        Lineage.decode(data)


@pytest.mark.rule("M10")
def test_numbers_count_within_their_store() -> None:
    for lineage in (MADE, ONCE, TWICE):
        assert lineage.must_have_seen(lineage.mark(70)) == 70


@pytest.mark.rule("M10")
def test_a_store_that_was_copied_after_what_was_seen_may_begin_anew() -> None:
    assert ONCE.must_have_seen(MADE.mark(100)) == 0
    assert TWICE.must_have_seen(MADE.mark(100)) == 0
    assert TWICE.must_have_seen(ONCE.mark(50)) == 0


@pytest.mark.rule("M10")
def test_one_that_was_copied_before_lacks_it() -> None:
    for lineage, mark in ((ONCE, MADE.mark(101)), (TWICE, MADE.mark(101)), (TWICE, ONCE.mark(51))):
        with pytest.raises(MetadataRolledBackError, match="this store was copied from an older state"):
            lineage.must_have_seen(mark)


@pytest.mark.rule("M10")
def test_the_place_from_which_the_cluster_moved_is_no_place_to_go_back_to() -> None:
    for lineage in (MADE, ONCE):
        with pytest.raises(MetadataRolledBackError, match="before it moved"):
            lineage.must_have_seen(TWICE.mark(1))


@pytest.mark.parametrize("mark", [b"x", b"x aa", b"1.5"])
def test_a_mark_that_is_none_is_told_apart(mark: bytes) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        MADE.must_have_seen(mark)


@pytest.mark.rule("M10")
async def test_a_cluster_says_what_it_has_seen_and_knows_it_again(memory_service: MemoryService) -> None:
    store = await memory_service.connect()
    await init_cluster_in(store, seams())
    await store.create("/ledgers-py/copied", ONCE.encode(), parents=True)
    metadata = await Metadata.over(store, seams())
    assert metadata.lineage == ONCE
    await metadata.check_not_rolled_back(metadata.seen())
    await metadata.check_not_rolled_back(b"99\n")
    with pytest.raises(MetadataRolledBackError):
        await metadata.check_not_rolled_back(b"101\n")
    with pytest.raises(MetadataRolledBackError):
        await metadata.check_not_rolled_back(b"%d aa\n" % (store.last_transaction + 1))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("moved", json.dumps({"to": "zk://h/l"}).encode(), "moved to zk://h/l"),
        ("moved", b"\xff", "moved to another store"),
        ("copying", b"{}", "--resume"),
    ],
)
async def test_who_comes_too_late_or_too_early_is_sent_away(
    memory_service: MemoryService, name: str, value: bytes, words: str
) -> None:
    store = await memory_service.connect()
    await init_cluster_in(store, seams())
    assert await read(store, Paths()) == MADE
    await store.create(f"/ledgers-py/{name}", value, parents=True)
    with pytest.raises(ClusterMovedError, match=words):
        await Metadata.over(store, seams())
