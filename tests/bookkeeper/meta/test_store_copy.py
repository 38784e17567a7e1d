from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from bookkeeper.errors import (
    ClusterExistsError,
    ClusterMovedError,
    LedgerExistsError,
    MetadataError,
    MetadataUnavailableError,
    NoClusterError,
    SessionsLiveError,
)
from bookkeeper.ids import Address, BookieId, LedgerId
from bookkeeper.ledger.metadata import LedgerMetadata
from bookkeeper.ledger.quorum import QuorumSpec
from bookkeeper.meta import store_copy
from bookkeeper.meta.cluster import Metadata, init_cluster_in
from bookkeeper.meta.records.cookies import Cookie
from bookkeeper.meta.records.disks import DiskProgress
from bookkeeper.meta.records.layout import Layout
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.records.service_info import ServiceInfo
from bookkeeper.meta.store import MetadataStore, Operation, Version
from bookkeeper.meta.store_copy import CopyReport, StoreCopy
from bookkeeper.meta.store_steps import ClusterLocation, walk
from bookkeeper.meta.stores.memory import MemoryStore
from tests.bookkeeper.meta.services import (
    REPLY_LOST,
    REQUEST_LOST,
    Losing,
    MemoryService,
    SqliteService,
    ZooKeeperService,
    seams,
)

Service = MemoryService | SqliteService | ZooKeeperService
B1 = BookieId("b1")
NEW = LedgerMetadata.create(QuorumSpec(ensemble_size=1, write_quorum=1, ack_quorum=1), [B1], password=b"p")


@pytest.fixture
def origin() -> MemoryService:
    return MemoryService()


@pytest.fixture
async def source(origin: MemoryService) -> MemoryStore:
    """A cluster with something of everything."""
    store = await origin.connect()
    await init_cluster_in(store, seams())
    await fill(store)
    return store


async def fill(store: MetadataStore, root: str = "/ledgers", count: int = 5) -> Metadata:
    metadata = await Metadata.over(store, seams(), root=root)
    for number in range(count):
        ledger, version = await metadata.ledgers.create(NEW)
        if number % 2:
            await metadata.ledgers.write(ledger, version.value.close(-1, 0), version.version)
    await metadata.ledgers.create(NEW, LedgerId(7_000_000_000))
    cookie = Cookie(bookie_id=B1, journal_dirs=("/j",), ledger_dirs=("/l",), instance_id=metadata.instance_id)
    await metadata.cookies.write(cookie, None)
    mark = b'replica: "b1"\nctime: 1\n'
    await store.create(f"{root}/underreplication/ledgers/0000/0000/0000/0001/urL0000000001", mark, parents=True)
    await store.create(f"{root}/underreplication/disable")
    await store.create(metadata.own("boot", "b1"), b"12", parents=True)
    await metadata.disks.write(B1, DiskProgress(directory_id=3, starting=12, boot=12, sequence=77), None)
    await store.create(metadata.own("journals", "names"), bytes(range(256)), parents=True)
    await store.create(metadata.own("big"), bytes(200_000), parents=True)
    await store.create(metadata.own("bigger"), bytes(200_000), parents=True)
    return metadata


def place(store: MetadataStore, root: str = "/ledgers", name: str = "") -> ClusterLocation:
    return ClusterLocation(store, Paths(root), name or f"there{root}")


async def copy(
    source: ClusterLocation, target: ClusterLocation, *, resume: bool = False, new_id: str = "aa"
) -> CopyReport:
    return await StoreCopy(source, target, new_id=new_id, progress=lambda *_: None).run(resume=resume)


async def everything(store: MetadataStore, root: str) -> dict[str, bytes]:
    return {path[len(root) :]: (await store.get(path)).value async for path in walk(store, (root, f"{root}-py"))}


OURS = ("-py/copied", "-py/moved", "-py/copying")


def without(tree: dict[str, bytes], *left_out: str) -> dict[str, bytes]:
    return {path: value for path, value in tree.items() if path not in (*OURS, *left_out)}


@pytest.mark.rule("G8", "M6")
async def test_what_could_be_brought_back_can_be_brought_back_there(source: MemoryStore, service: Service) -> None:
    here = await Metadata.over(source, seams())
    await here.ledgers.create(NEW, LedgerId(4711))
    before = (await here.ledgers.read(LedgerId(4711))).value
    await here.ledgers.delete(LedgerId(4711), grace_s=1000)
    target = await service.connect()
    await copy(place(source), place(target, "/deep/there"))
    metadata = await Metadata.over(target, seams(), root="/deep/there")
    await metadata.ledgers.restore(LedgerId(4711))
    assert (await metadata.ledgers.read(LedgerId(4711))).value == before


@pytest.mark.rule("M6", "M10")
async def test_everything_arrives_and_life_goes_on_there(source: MemoryStore, service: Service) -> None:
    target = await service.connect()
    root = "/deep/there"
    here = await Metadata.over(source, seams())
    await here.ledgers.create(NEW, LedgerId(4711))
    await here.ledgers.delete(LedgerId(4711))
    seen = here.seen()
    report = await copy(place(source), place(target, root))
    assert without(await everything(source, "/ledgers")) == without(await everything(target, root))
    assert (report.ledgers, report.kinds["cookies"], report.kinds["boot"], report.kinds["journals"]) == (6, 1, 1, 1)
    metadata = await Metadata.over(target, seams(), root=root)
    assert metadata.instance_id == report.instance_id
    assert [ledger async for ledger in metadata.ledgers.list()] == [0, 1, 2, 3, 4, 7_000_000_000]
    told = await metadata.disks.read(B1)
    assert told is not None and told.value.sequence == 77, "a bookie's disk is compared there, too (K32)"
    new, _ = await metadata.ledgers.create(NEW)
    assert new >= int(report.next_id) >= 5
    with pytest.raises(LedgerExistsError, match="id cannot be used again"):
        await metadata.ledgers.create(NEW, LedgerId(4711))
    await metadata.check_not_rolled_back(seen)
    await metadata.check_not_rolled_back(metadata.seen())
    with pytest.raises(ClusterMovedError, match="moved to there/deep/there"):
        await Metadata.over(source, seams())


async def test_and_back(source: MemoryStore, service: Service) -> None:
    there = await service.connect()
    seen = (await Metadata.over(source, seams())).seen()
    await copy(place(source), place(there), new_id="aa")
    again = await Metadata.over(there, seams())
    newest, _ = await again.ledgers.create(NEW)
    seen_there = again.seen()
    back = MemoryService()
    home = await back.connect()
    await copy(place(there, name="there"), place(home, name="home"), new_id="bb")
    metadata = await Metadata.over(home, seams())
    assert [copied.id for copied in metadata.lineage.copies] == ["aa", "bb"]
    for mark in (seen, seen_there, metadata.seen()):
        await metadata.check_not_rolled_back(mark)
    assert (await metadata.ledgers.create(NEW))[0] > newest


@pytest.mark.rule("M6")
@pytest.mark.parametrize("layout", Layout)
async def test_no_id_is_issued_again(memory_service: MemoryService, layout: Layout) -> None:
    store, other = await memory_service.connect(), await MemoryService().connect()
    await init_cluster_in(store, seams(), layout=layout)
    metadata = await Metadata.over(store, seams())
    issued = [(await metadata.ledgers.create(NEW))[0] for _ in range(300)]
    for ledger in issued:
        await metadata.ledgers.delete(ledger)
    report = await copy(place(store), place(other))
    after = await Metadata.over(other, seams())
    assert after.layout is layout
    news = [(await after.ledgers.create(NEW))[0] for _ in range(3)]
    assert min(news) > max(issued)
    assert min(news) >= int(report.next_id)
    assert max(news) < 2 * max(issued) + 10


@pytest.mark.rule("M6")
async def test_where_many_ids_were_issued_long_ones_begin(source: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_copy, "BURNT_MAX", 3)
    target = await MemoryService().connect()
    report = await copy(place(source), place(target))
    metadata = await Metadata.over(target, seams())
    assert (await metadata.ledgers.create(NEW))[0] == int(report.next_id) == 1 << 32


@pytest.mark.rule("M6")
async def test_long_ids_go_on_with_new_high_bits(source: MemoryStore) -> None:
    await source.create("/ledgers/idgen-long/HOB-0000000287", parents=True)
    before = (await (await Metadata.over(source, seams())).ledgers.create(NEW))[0]
    target = await MemoryService().connect()
    await copy(place(source), place(target))
    after = (await (await Metadata.over(target, seams())).ledgers.create(NEW))[0]
    assert (before >> 32, after) == (287, 288 << 32)


async def test_a_cluster_that_never_made_a_ledger_is_copied_too(memory_service: MemoryService) -> None:
    store, other = await memory_service.connect(), await MemoryService().connect()
    await init_cluster_in(store, seams())
    assert (await copy(place(store), place(other))).ledgers == 0
    assert (await (await Metadata.over(other, seams())).ledgers.create(NEW))[0] == 0


async def test_a_registered_bookie_or_a_held_lock_refuses(
    origin: MemoryService, source: MemoryStore, service: Service
) -> None:
    target = await service.connect()
    other = await origin.connect()
    bookies = (await Metadata.over(other, seams())).bookies
    here = await bookies.register(B1, ServiceInfo.bookie(Address("127.0.0.1", 1)))
    with pytest.raises(SessionsLiveError, match="available/b1"):
        await copy(place(source), place(target))
    await here.unregister()
    await other.create("/ledgers/underreplication/locks/urL0000000001", ephemeral=True, parents=True)
    with pytest.raises(SessionsLiveError, match="urL0000000001"):
        await copy(place(source), place(target))
    assert await target.exists("/ledgers") is None
    await other.close()
    await copy(place(source), place(target))


async def test_a_session_with_a_file_refuses(sqlite_service: SqliteService, memory_service: MemoryService) -> None:
    store, other = await sqlite_service.connect(), await sqlite_service.connect()
    await init_cluster_in(store, seams())
    target = await memory_service.connect()
    with pytest.raises(SessionsLiveError, match="1 other process uses"):
        await copy(place(store), place(target))
    await other.close()
    await copy(place(store), place(target))


async def test_a_target_that_is_not_empty_is_left_as_it_is(source: MemoryStore, service: Service) -> None:
    target = await service.connect()
    await init_cluster_in(target, seams())
    before = await everything(target, "/ledgers")
    for resume in (False, True):
        with pytest.raises(ClusterExistsError, match="was left as it is"):
            await copy(place(source), place(target), resume=resume)
    assert await everything(target, "/ledgers") == before
    await Metadata.over(source, seams())


async def test_where_there_is_no_cluster_there_is_nothing_to_copy(memory_service: MemoryService) -> None:
    store = await memory_service.connect()
    with pytest.raises(NoClusterError):
        await copy(place(store, "/nowhere"), place(store, "/there"))


async def test_a_second_run_has_nothing_to_do(source: MemoryStore) -> None:
    target = await MemoryService().connect()
    await copy(place(source), place(target))
    metadata = await Metadata.over(target, seams())
    await metadata.ledgers.create(NEW)
    for resume in (False, True):
        assert (await copy(place(source), place(target), resume=resume)).already
    with pytest.raises(ClusterExistsError, match="moved already"):
        await copy(place(source), place(await MemoryService().connect(), "/elsewhere"))


@pytest.mark.rule("M8")
async def test_lost_replies_change_nothing(source: MemoryStore) -> None:
    service = MemoryService()
    target = await service.connect()
    service.cluster.interference = Losing(
        multi=[REPLY_LOST, REQUEST_LOST] * 6, create=[REPLY_LOST, REQUEST_LOST], delete=[REPLY_LOST]
    )
    await copy(place(source), place(target))
    await target.close()
    target = await service.connect()
    assert without(await everything(source, "/ledgers")) == without(await everything(target, "/ledgers"))
    assert (await (await Metadata.over(target, seams())).ledgers.create(NEW))[0] >= 5


class Stopped(Exception):
    """The process is killed here."""


class Mortal:
    """A store whose process dies before its n-th write."""

    def __init__(self, store: MetadataStore, lives: int) -> None:
        self._store = store
        self.lives = lives

    def __getattr__(self, name: str) -> Any:
        if name in ("create", "set", "delete", "multi"):
            self.lives -= 1
            if self.lives < 0:
                raise Stopped
        return getattr(self._store, name)


@pytest.mark.rule("M6")
async def test_killed_before_any_write_and_run_again_it_ends_the_same() -> None:
    lives = 0
    while True:
        here, service = await MemoryService().connect(), MemoryService()
        there = await service.connect()
        await init_cluster_in(here, seams())
        await fill(here)
        before = without(await everything(here, "/ledgers"))
        mortal: Any = Mortal(there, lives)
        try:
            await copy(place(here, name="here"), place(mortal))
        except Stopped:
            await there.close()
            there = await service.connect()
            with pytest.raises((ClusterMovedError, NoClusterError)):
                await Metadata.over(there, seams())
            if await there.exists("/ledgers-py/copying") is not None:
                with pytest.raises(ClusterExistsError, match="--resume"):
                    await copy(place(here, name="here"), place(there))
        else:
            break
        await copy(place(here, name="here"), place(there), resume=True, new_id="bb")
        assert without(await everything(there, "/ledgers")) == before
        assert (await (await Metadata.over(there, seams())).ledgers.create(NEW))[0] >= 5
        lives += 1
    assert lives > 10


async def test_who_writes_meanwhile_is_noticed_and_the_source_goes_on(source: MemoryStore) -> None:
    target = await MemoryService().connect()
    metadata = await Metadata.over(source, seams())
    changed = False

    def meddle(what: str, done: int, total: int) -> None:
        nonlocal changed
        if what == "copying" and done == total and not changed:
            changed = True
            tasks.append(asyncio.ensure_future(metadata.ledgers.create(NEW)))

    tasks: list[asyncio.Future[Any]] = []
    with pytest.raises(MetadataError, match=r"somebody wrote while the metadata were copied.*--resume"):
        await StoreCopy(place(source), place(target), new_id="aa", progress=meddle).run()
    (created,) = await asyncio.gather(*tasks)
    await Metadata.over(source, seams())
    with pytest.raises(ClusterMovedError, match="--resume"):
        await Metadata.over(target, seams())
    await copy(place(source), place(target), resume=True)
    after = await Metadata.over(target, seams())
    assert (await after.ledgers.read(created[0])).value == replace(NEW, creator_token=created[1].value.creator_token)


async def test_a_value_that_arrives_changed_is_noticed(source: MemoryStore) -> None:
    target = await MemoryService().connect()
    bit = False

    class Rotten(Mortal):
        async def get(self, path: str) -> Any:
            found = await self._store.get(path)
            return replace(found, value=b"rot") if bit and path == "/ledgers/cookies/b1" else found

    def later(what: str, done: int, total: int) -> None:
        nonlocal bit
        bit = bit or what == "ids" or (what == "copying" and done == total)

    rotten: Any = Rotten(target, 10_000)
    with pytest.raises(MetadataError, match="/cookies/b1 differs"):
        await StoreCopy(place(source), place(rotten), new_id="aa", progress=later).run()
    await Metadata.over(source, seams())


async def test_a_target_that_takes_nothing_ends_the_copy(source: MemoryStore) -> None:
    service = MemoryService()
    target = await service.connect()
    service.cluster.interference = Losing(multi=[REQUEST_LOST] * 50)
    with pytest.raises(MetadataUnavailableError, match="could not be written to"):
        await copy(place(source), place(target))


class Held(StoreCopy):
    """A run that is paused before a step: by default between closing the source and looking at both sides."""

    def __init__(self, source: ClusterLocation, target: ClusterLocation, *, new_id: str, step: str = "_verify") -> None:
        super().__init__(source, target, new_id=new_id, progress=lambda *_: None)
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()
        performed = getattr(self, step)

        async def held(*arguments: Any) -> Any:
            self.reached.set()
            await self.go_on.wait()
            return await performed(*arguments)

        setattr(self, step, held)

    async def begin(self) -> asyncio.Task[CopyReport]:
        task = asyncio.create_task(self.run())
        await self.reached.wait()
        return task


@pytest.mark.rule("M6")
async def test_a_copy_to_elsewhere_that_comes_too_late_leaves_the_mark_of_the_first(source: MemoryStore) -> None:
    there, elsewhere = await MemoryService().connect(), await MemoryService().connect()

    class Late(Held):
        async def _close(self, instance_id: str) -> int:
            self.reached.set()
            await self.go_on.wait()
            return await super()._close(instance_id)

    late = Late(place(source), place(elsewhere, name="elsewhere"), new_id="bb")
    running = await late.begin()
    await copy(place(source), place(there, name="there"))
    late.go_on.set()
    with pytest.raises(ClusterExistsError, match="moved"):
        await running
    with pytest.raises(ClusterMovedError, match="moved to there"):
        await Metadata.over(source, seams())
    await Metadata.over(there, seams())


@pytest.mark.rule("M6")
async def test_a_run_that_was_taken_over_neither_opens_the_target_nor_the_source(source: MemoryStore) -> None:
    target = await MemoryService().connect()
    old = Held(place(source), place(target), new_id="aa")
    running = await old.begin()
    await copy(place(source), place(target), resume=True, new_id="bb")
    await (await Metadata.over(target, seams())).ledgers.create(NEW)  # life goes on there
    old.go_on.set()
    with pytest.raises(MetadataError):
        await running
    with pytest.raises(ClusterMovedError, match="moved to"):
        await Metadata.over(source, seams())


@pytest.mark.rule("M6")
async def test_of_two_runs_only_the_later_one_opens_the_target(source: MemoryStore) -> None:
    target = await MemoryService().connect()
    old = Held(place(source), place(target), new_id="aa")
    running = await old.begin()
    new = Held(place(source), place(target), new_id="bb")
    taking_over = asyncio.create_task(new.run(resume=True))
    await new.reached.wait()
    old.go_on.set()
    with pytest.raises(MetadataError, match="taken over"):
        await running
    with pytest.raises(ClusterMovedError, match="--resume"):
        await Metadata.over(target, seams())
    new.go_on.set()
    await taking_over
    assert (await Metadata.over(target, seams())).lineage.id == "bb"


@pytest.mark.rule("M6")
@pytest.mark.parametrize("step", ["_copy", "_copy_chunk", "_ids", "_close"])
async def test_a_run_that_was_paused_anywhere_while_another_ended_it_changes_nothing(
    source: MemoryStore, step: str
) -> None:
    """It does not write over what lives at the target by then, and does not open the source again (F5)."""
    target = await MemoryService().connect()
    old = Held(place(source), place(target), new_id="aa", step=step)
    running = await old.begin()
    await copy(place(source), place(target), resume=True, new_id="bb")
    alive = (await Metadata.over(target, seams())).ledgers
    first = await anext(alive.list())
    found = await alive.read(first)
    await alive.write(first, replace(found.value, custom={"lives": b"here"}), found.version)
    before = without(await everything(target, "/ledgers"))
    old.go_on.set()
    with pytest.raises(MetadataError):
        await running
    after = without(await everything(target, "/ledgers"))
    assert after == before
    with pytest.raises(ClusterMovedError, match="moved to"):
        await Metadata.over(source, seams())
    assert (await Metadata.over(target, seams())).lineage.id == "bb"


@pytest.mark.rule("M8")
async def test_a_cluster_that_could_not_be_opened_at_the_target_at_first_is_opened(source: MemoryStore) -> None:
    target = await MemoryService().connect()
    lost: list[Sequence[Operation]] = []

    class Losing:
        def __getattr__(self, name: str) -> Any:
            return getattr(target, name)

        async def multi(self, operations: Sequence[Operation]) -> list[Version | None]:
            opens = any(each.path == Paths("/ledgers").instance_id for each in operations)
            if opens and not lost:
                lost.append(operations)
                raise MetadataUnavailableError("the request was lost")
            return await target.multi(operations)

    await copy(place(source), place(Losing()))
    assert lost and (await target.get("/ledgers/INSTANCEID")).value == (await source.get("/ledgers/INSTANCEID")).value
