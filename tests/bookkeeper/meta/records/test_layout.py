from __future__ import annotations

from typing import Any

import pytest

from bookkeeper.errors import MetadataFormatError, MetadataUnavailableError
from bookkeeper.ids import LedgerId
from bookkeeper.meta.records.layout import Layout, decode, encode
from tests.bookkeeper.meta.services import MemoryService, load

COLUMNS = {
    "flat": Layout.FLAT,
    "short_hierarchical": Layout.LEGACY_HIERARCHICAL,
    "long_hierarchical": Layout.LONG_HIERARCHICAL,
    "hierarchical_default": Layout.HIERARCHICAL,
}
TREES = {"flat": Layout.FLAT, "hierarchical": Layout.HIERARCHICAL, "longhierarchical": Layout.LONG_HIERARCHICAL}


@pytest.mark.parametrize("row", load("ids.json")["paths"], ids=lambda row: str(row["ledger_id"]))
def test_ledgers_lie_where_java_puts_them(row: dict[str, Any]) -> None:
    for column, layout in COLUMNS.items():
        if row.get(column) and not (column in ("flat", "short_hierarchical") and row["ledger_id"] >= 2**31 - 1):
            assert layout.ledger_path("", LedgerId(row["ledger_id"])) == row[column]


@pytest.mark.parametrize("name", TREES)
async def test_a_walk_over_a_tree_of_java_finds_its_ledgers_in_order(name: str, memory_service: MemoryService) -> None:
    store = await memory_service.connect()
    ledgers = set()
    for node in load(f"zookeeper/ledgers-{name}.json")["nodes"]:
        await store.create(f"/ledgers{node['path']}".rstrip("/"), bytes.fromhex(node["data"]))
        if node.get("decoded", {}).get("kind") == "ledger metadata":
            ledgers.add(int("".join(filter(str.isdecimal, node["path"]))))
    found = [ledger_id async for ledger_id in TREES[name].walk(store, "/ledgers")]
    assert found == sorted(ledgers)
    assert found


@pytest.mark.rule("Z10")
async def test_a_page_that_fails_ends_the_listing_by_an_error(memory_service: MemoryService) -> None:
    store = await memory_service.connect()
    for number in (1, 10_000, 20_000):
        await store.create(Layout.HIERARCHICAL.ledger_path("/ledgers", LedgerId(number)), parents=True)
    walk = Layout.HIERARCHICAL.walk(store, "/ledgers")
    assert await anext(walk) == 1
    memory_service.cluster.begin_outage()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bookkeeper.meta.stores.memory.OPERATION_TIMEOUT_S", 0.01)
        with pytest.raises(MetadataUnavailableError):
            await anext(walk)


async def test_a_directory_that_goes_during_a_walk_was_empty(memory_service: MemoryService) -> None:
    store = await memory_service.connect()
    paths = [Layout.HIERARCHICAL.ledger_path("/ledgers", LedgerId(number)) for number in (1, 10_000)]
    for path in paths:
        await store.create(path, parents=True)
    walk = Layout.HIERARCHICAL.walk(store, "/ledgers")
    assert await anext(walk) == 1
    await store.delete(paths[1], None)
    await store.delete("/ledgers/00/0001", None)
    assert [ledger_id async for ledger_id in walk] == []


@pytest.mark.rule("X29")
@pytest.mark.parametrize("layout", Layout)
async def test_names_that_no_ledger_can_have_are_passed_over(memory_service: MemoryService, layout: Layout) -> None:
    store = await memory_service.connect()
    await store.create(layout.ledger_path("/ledgers", LedgerId(5)), parents=True)
    for name in (
        "L9999999999",
        "L٠٠٠٠٠٠٠٠٠١",
        "L5",
        "00/0000/x",
        "00/٠٠٠٠/L0001",
        "٠٠/0000/L0001",
        "999/9999/9999/9999/L9999",
    ):
        await store.create(f"/ledgers/{name}", parents=True)
    assert [ledger_id async for ledger_id in layout.walk(store, "/ledgers")] == [5]


@pytest.mark.parametrize("name", TREES)
def test_the_layout_value_is_javas(name: str) -> None:
    nodes = load(f"zookeeper/initnewcluster-{name}.json")["nodes"]
    (data,) = [bytes.fromhex(node["data"]) for node in nodes if node["path"] == "/LAYOUT"]
    assert encode(TREES[name]) == data
    assert decode(data) is TREES[name]


@pytest.mark.parametrize("layout", Layout)
def test_decoding_undoes_encoding(layout: Layout) -> None:
    assert decode(encode(layout)) is layout


def test_the_first_layout_format_is_read() -> None:
    assert decode(b"1\nflat:1") is Layout.FLAT
    assert decode(b"1\nhierarchical:1") is Layout.LEGACY_HIERARCHICAL


@pytest.mark.parametrize("data", [b"", b"3\nx:1", b"2\norg.apache.bookkeeper.meta.MSLedgerManagerFactory:1", b"\xff"])
def test_a_layout_we_do_not_know_is_refused(data: bytes) -> None:
    with pytest.raises(MetadataFormatError):
        decode(data)


@pytest.mark.parametrize("layout", [Layout.FLAT, Layout.LEGACY_HIERARCHICAL])
def test_short_layouts_have_no_place_for_long_ids(layout: Layout) -> None:
    with pytest.raises(ValueError, match="has no place for ledger id"):
        layout.ledger_path("", LedgerId(2**31 - 1))


def test_parents_to_clear_are_named_from_below() -> None:
    assert Layout.HIERARCHICAL.emptied_parents("/ledgers", LedgerId(123456789)) == ["/ledgers/01/2345", "/ledgers/01"]
    assert Layout.FLAT.emptied_parents("/ledgers", LedgerId(5)) == []
