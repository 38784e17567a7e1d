"""A backup of metadata, taken while the cluster is in use, and restored."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bookkeeper.errors import (
    ClusterExistsError,
    MetadataError,
    MetadataFormatError,
    MetadataRolledBackError,
    NoClusterError,
    SessionsLiveError,
)
from bookkeeper.ids import LedgerId
from bookkeeper.meta.backup import MetadataBackup, restore_backup, take_backup
from bookkeeper.meta.cluster import Metadata, init_cluster_in
from bookkeeper.meta.records import lineage
from bookkeeper.meta.records.layout import Layout
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store import Create, Delete, MetadataStore, ensure_created
from bookkeeper.meta.store_copy import BEYOND_BACKUP, StoreCopy
from bookkeeper.meta.store_steps import ClusterLocation, probe, refuse_live
from tests.bookkeeper.meta.services import MemoryService, seams
from tests.bookkeeper.meta.test_store_copy import NEW, fill

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


class Stopped(Exception):
    """The process is killed here."""


async def begun(backup: MetadataBackup, target: MetadataStore) -> None:
    """A restoration that was killed when it had copied."""

    def stop(what: str, done: int, total: int) -> None:
        if what == "copying" and done == total:
            raise Stopped

    with pytest.raises(Stopped):
        await restore_backup(backup, place(target), new_id="r1", progress=stop)


async def test_one_that_an_earlier_version_began_with_another_file_says_why_it_ends() -> None:
    _, store = await cluster()
    old, target = await taken(store), await MemoryService().connect()
    await store.delete("/ledgers/cookies/b1", None)
    await begun(old, target)
    said = json.loads((await target.get("/ledgers-py/copying")).value)
    assert said.pop("backup")
    await target.set("/ledgers-py/copying", json.dumps(said).encode(), None)  # as that version wrote it
    with pytest.raises(MetadataError, match=r"cookies/b1.*began with another file.*begin anew"):
        await restore_backup(await taken(store), place(target), new_id="r2", progress=quiet, resume=True)


@pytest.mark.rule("M9")
@pytest.mark.parametrize("at", range(24))
async def test_what_names_ledgers_names_none_that_is_missing(at: int) -> None:
    """Somebody begins a segment, deletes a ledger and brings another one back, at any moment of a backup."""
    _, store = await cluster()
    metadata = await Metadata.over(store, seams())
    stream = metadata.own("segments", "streams", "s", "chain")
    await store.create(stream, b"0", parents=True)
    back, kept = LedgerId(1), LedgerId(3)
    await metadata.ledgers.delete(back, grace_s=60)
    looks = 0

    async def meanwhile() -> None:
        nonlocal looks
        looks += 1
        if looks == at:
            new, _ = await metadata.ledgers.create(NEW)
            await store.set(stream, b"%d" % new, None)
            await metadata.ledgers.delete(kept, grace_s=60)
            await metadata.ledgers.restore(back)

    class Busy:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        async def children(self, path: str) -> list[str]:
            await meanwhile()
            return await store.children(path)

    values = (await taken(Busy())).values
    assert looks > at
    assert metadata.ledgers.path(LedgerId(int(values[stream]))) in values
    for ledger in (back, kept):
        there = metadata.ledgers.path(ledger) in values
        assert there != (metadata.ledgers.restorable.path(ledger) in values), "either there, or can be brought back"


@pytest.mark.rule("M7")
async def test_names_that_look_like_ledgers_or_numbers_are_names() -> None:
    _, store = await cluster()
    named = {"/ledgers-py/journals/L7/snapshots", "/ledgers-py/segments/names/ID-0123456789", "/ledgers/cookies/L7/x"}
    for path in named:
        await store.create(path, b"here", parents=True)
    backup = await taken(store)
    assert backup.ledgers == 6 and named <= set(backup.values)
    target = await MemoryService().connect()
    await restore_backup(backup, place(target), new_id="r1", progress=quiet)
    assert [(await target.get(path)).value for path in named] == [b"here"] * 3


async def test_a_bookie_whose_id_looks_like_a_ledger_is_seen_to_run() -> None:
    service, store = await cluster()
    await (await service.connect()).create("/ledgers/available/L7", ephemeral=True, parents=True)
    with pytest.raises(SessionsLiveError, match="available/L7"):
        await refuse_live(place(store))


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


@pytest.mark.parametrize("mark", [lineage.MOVED, lineage.COPYING])
async def test_what_has_moved_or_is_being_moved_has_no_backup(mark: str) -> None:
    _, store = await cluster()
    await store.create(PATHS.own(mark), parents=True)
    with pytest.raises(MetadataError, match="take the backup there"):
        await taken(store)


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


@pytest.mark.rule("M9")
@pytest.mark.parametrize("at", range(7))
async def test_what_names_a_page_below_it_names_none_that_is_missing(at: int) -> None:
    """A stream's node names a page, and another one, and the first one goes: at any moment of a backup."""
    _, store = await cluster()
    metadata = await Metadata.over(store, seams())
    home = metadata.own("segments", "streams", "s")
    for path, value in ((f"{home}/chain", b"a"), (f"{home}/pages/a", b"")):
        await store.create(path, value, parents=True)
    calls = 0

    class Busy:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        async def get(self, path: str) -> Any:
            nonlocal calls
            if home in path:
                number, calls = calls, calls + 1
                if number == at:
                    await store.create(f"{home}/pages/b")
                    await store.set(f"{home}/chain", b"b", None)
                    await store.delete(f"{home}/pages/a", None)
            return await store.get(path)

    values = (await taken(Busy())).values
    assert f"{home}/pages/{values[f'{home}/chain'].decode()}" in values


async def test_a_restoration_is_continued_with_the_file_that_it_began_with(monkeypatch: pytest.MonkeyPatch) -> None:
    _, store = await cluster()
    backup = await taken(store)
    other = await take_backup(place(store), now_ms=2_000, progress=quiet)
    target = await MemoryService().connect()

    async def cut_short(self: StoreCopy, rests: list[str]) -> None:
        raise MetadataError("the store went away")

    with monkeypatch.context() as patched:
        patched.setattr(StoreCopy, "_copy", cut_short)
        with pytest.raises(MetadataError, match="went away"):
            await restore_backup(backup, place(target), new_id="r1", progress=quiet)
    with pytest.raises(ClusterExistsError, match="another backup of this cluster"):
        await restore_backup(other, place(target), new_id="r2", progress=quiet, resume=True)
    assert (await restore_backup(backup, place(target), new_id="r3", progress=quiet, resume=True)).ledgers == 6


@pytest.mark.rule("M9")
@pytest.mark.parametrize("at", range(9))
async def test_what_is_renamed_meanwhile_has_one_name(at: int) -> None:
    """A stream is renamed at any moment of a backup."""
    _, store = await cluster()
    names = (await Metadata.over(store, seams())).own("segments", "names")
    for name in ("a", "s", "z"):
        await store.create(f"{names}/{name}", name.encode(), parents=True)
    looks = 0

    class Busy:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        async def children(self, path: str) -> list[str]:
            if path.endswith("-py"):
                await self._one()
            return await store.children(path)

        async def get(self, path: str) -> Any:
            if names in path:
                await self._one()
            return await store.get(path)

        async def _one(self) -> None:
            nonlocal looks
            looks += 1
            if looks == at:
                await store.multi([Delete(f"{names}/s", None), Create(f"{names}/t", b"s")])

    values = (await taken(Busy())).values
    assert [path for path, value in values.items() if value == b"s"] in ([f"{names}/s"], [f"{names}/t"])
    assert looks >= 6
