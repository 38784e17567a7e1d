"""A backup of metadata, taken while the cluster is in use, and restored."""

from __future__ import annotations

import json

import pytest

from bookkeeper.errors import ClusterExistsError, MetadataFormatError, MetadataRolledBackError, NoClusterError
from bookkeeper.meta.backup import MetadataBackup, restore_backup, take_backup
from bookkeeper.meta.cluster import init_cluster_in
from bookkeeper.meta.records import lineage
from bookkeeper.meta.records.layout import Layout
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store import MetadataStore, ensure_created
from bookkeeper.meta.store_copy import BEYOND_BACKUP, ClusterLocation, probe
from tests.bookkeeper.meta.services import MemoryService, seams
from tests.bookkeeper.meta.test_store_copy import fill

PATHS = Paths("/ledgers")


def place(store: MetadataStore, name: str = "here") -> ClusterLocation:
    return ClusterLocation(store, PATHS, name)


def quiet(what: str, done: int, total: int) -> None:
    del what, done, total


async def taken(store: MetadataStore) -> MetadataBackup:
    return await take_backup(place(store), now_ms=1_000, progress=quiet)


async def cluster(layout: Layout = Layout.HIERARCHICAL) -> tuple[MemoryService, MetadataStore]:
    service = MemoryService()
    store = await service.connect()
    await init_cluster_in(store, seams(), layout=layout)
    if layout is Layout.HIERARCHICAL:
        await fill(store)
    return service, store


async def test_a_backup_is_taken_while_others_have_sessions_and_has_none_of_theirs() -> None:
    service, store = await cluster()
    other = await service.connect()
    await other.create("/ledgers/available/b9", b"up", ephemeral=True, parents=True)
    backup = await taken(store)
    assert backup.ledgers == 6
    assert "/ledgers/available/b9" not in backup.values
    assert "/ledgers/cookies/b1" in backup.values
    assert MetadataBackup.decode(backup.encode()) == backup


async def test_it_is_restored_byte_for_byte() -> None:
    _, store = await cluster()
    backup = await taken(store)
    target = await MemoryService().connect()
    report = await restore_backup(backup, place(target), new_id="r1", progress=quiet)
    assert (report.ledgers, report.instance_id) == (6, backup.instance_id)
    for path, value in backup.values.items():
        if not path.startswith("/ledgers-py/copied"):
            assert (await target.get(path)).value == value, path
    with pytest.raises(ClusterExistsError, match="not empty"):
        await restore_backup(backup, place(target), new_id="r2", progress=quiet)


@pytest.mark.rule("M10")
async def test_whoever_has_seen_more_than_the_backup_is_told() -> None:
    _, store = await cluster()
    before = await lineage.read(store, PATHS)
    backup = await taken(store)
    seen_then = before.mark(backup.transaction)
    await store.create("/ledgers/later", b"")
    seen_later = before.mark(store.last_transaction)
    target = await MemoryService().connect()
    await restore_backup(backup, place(target), new_id="r1", progress=quiet)
    restored = await lineage.read(target, PATHS)
    assert restored.must_have_seen(seen_then) == 0
    assert restored.copies[-1].transaction == backup.transaction, "what the restoration itself did counts for nothing"
    with pytest.raises(MetadataRolledBackError, match="older state"):
        restored.must_have_seen(seen_later)


@pytest.mark.rule("M6")
async def test_new_ids_begin_far_above_those_that_were_issued_after_the_backup() -> None:
    _, store = await cluster()
    backup = await taken(store)
    target = await MemoryService().connect()
    report = await restore_backup(backup, place(target), new_id="r1", progress=quiet)
    assert report.next_id == str(BEYOND_BACKUP << 32)
    assert await target.exists(PATHS.long_ids(BEYOND_BACKUP)) is not None


@pytest.mark.rule("M6")
@pytest.mark.parametrize("layout", [Layout.FLAT, Layout.LEGACY_HIERARCHICAL])
async def test_short_ids_continue_behind_those_of_the_backup(layout: Layout) -> None:
    _, store = await cluster(layout)
    generator = PATHS.root if layout is Layout.FLAT else PATHS.id_generator
    await ensure_created(store, generator)
    for _ in range(7):
        await probe(store, generator)
    backup = await taken(store)
    target = await MemoryService().connect()
    report = await restore_backup(backup, place(target), new_id="r1", progress=quiet)
    assert int(report.next_id) > backup.number >= 7


async def test_what_is_not_there_has_no_backup() -> None:
    with pytest.raises(NoClusterError):
        await taken(await MemoryService().connect())


async def test_a_backup_that_was_cut_or_changed_is_refused() -> None:
    _, store = await cluster()
    lines = list((await taken(store)).encode())
    row = json.loads(lines[3])
    changed = json.dumps({**row, "path": row["path"] + "x"}) + "\n"
    for wrong, said in (
        (lines[:-1], "cut"),
        ([*lines[:3], changed, *lines[4:]], "changed"),
        ([*lines[:3], *lines[4:]], "changed"),
        ([*lines, lines[1]], "after its end"),
        ([lines[0].replace('"version": 1', '"version": 2'), *lines[1:]], "version 2"),
        (["{}\n"], "no backup"),
        (["nonsense\n"], "no backup"),
        ([], "no backup"),
    ):
        with pytest.raises(MetadataFormatError, match=said):
            MetadataBackup.decode(wrong)
