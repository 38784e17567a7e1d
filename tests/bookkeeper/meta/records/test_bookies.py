from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bookkeeper.errors import (
    BookieUnavailableError,
    CookieError,
    IllegalOperationError,
    KeyExistsError,
    MetadataFormatError,
    NoClusterError,
    SessionExpiredError,
)
from bookkeeper.ids import Address, BookieId
from bookkeeper.meta.records.bookies import Bookies
from bookkeeper.meta.records.cookies import Cookie, Cookies
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.records.service_info import ServiceInfo
from bookkeeper.meta.store import MetadataStore, Version
from bookkeeper.meta.stores.memory import Fate
from tests.bookkeeper.meta.services import REPLY_LOST, REQUEST_LOST, Losing, MemoryService
from tests.contracts.metadata_store import Calls, Service, until

A = BookieId("a:1")
INFO = ServiceInfo.bookie(Address("10.0.0.1", 3181))
PATHS = Paths()


def bookies_in(store: MetadataStore) -> Bookies:
    return Bookies(store, PATHS, Cookies(store, PATHS))


@pytest.fixture
async def other(service: Service) -> MetadataStore:
    """Somebody else's session."""
    return await service.connect()


async def test_a_registration_from_beginning_to_end(store: MetadataStore, other: MetadataStore) -> None:
    """On every kind of store."""
    watcher, calls = bookies_in(other), Calls()
    registration = await bookies_in(store).register(A, INFO)
    assert registration.present
    await other.sync("/")
    assert (await watcher.writable(), await watcher.read_only()) == ([A], [])
    assert await watcher.address(A) == Address("10.0.0.1", 3181)
    watch = watcher.watch(calls)
    await calls.settle()
    await registration.set_read_only(True)
    await calls.wait()
    await other.sync("/")
    assert (await watcher.writable(), await watcher.read_only()) == ([], [A])
    assert await watcher.address(A) == Address("10.0.0.1", 3181)
    await registration.set_read_only(False)
    await other.sync("/")
    assert (await watcher.writable(), await watcher.read_only()) == ([A], [])
    await registration.unregister()
    await registration.unregister()
    await other.sync("/")
    assert (await watcher.writable(), await watcher.read_only()) == ([], [])
    with pytest.raises(BookieUnavailableError):
        await watcher.address(A)
    watch.close()


async def test_an_idle_registration_asks_nothing(store: MetadataStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """On every kind of store: its own watches must not wake it for ever."""
    asked, ask = 0, store.owner

    async def counted(path: str) -> int | None:
        nonlocal asked
        asked += 1
        return await ask(path)

    monkeypatch.setattr(store, "owner", counted)
    registration = await bookies_in(store).register(A, INFO)

    async def round_trips() -> int:
        for _ in range(60):
            await store.sync("/")
        return asked

    settled = await round_trips()
    assert await round_trips() == settled
    await registration.unregister()


@pytest.mark.parametrize("with_cookie", [False, True])
async def test_a_registration_is_written_once(
    store: MetadataStore, other: MetadataStore, monkeypatch: pytest.MonkeyPatch, with_cookie: bool
) -> None:
    """On every kind of store: when its watches call it looks again, and writes nothing."""
    cookie = Cookie(bookie_id=A, journal_dirs=("/j",), ledger_dirs=("/l",), instance_id=None)
    await Cookies(store, PATHS).write(cookie, None)
    written, looked, create, multi, owner = 0, 0, store.create, store.multi, store.owner

    async def counted_create(path: str, *args: Any, **options: Any) -> tuple[str, Version]:
        nonlocal written
        written += 1
        return await create(path, *args, **options)

    async def counted_multi(operations: Any) -> list[Version | None]:
        nonlocal written
        written += 1
        return await multi(operations)

    async def counted_owner(path: str) -> int | None:
        nonlocal looked
        looked += 1
        return await owner(path)

    monkeypatch.setattr(store, "create", counted_create)
    monkeypatch.setattr(store, "multi", counted_multi)
    registration = await bookies_in(store).register(A, INFO, with_cookie=with_cookie)
    first = written
    monkeypatch.setattr(store, "owner", counted_owner)
    for _ in range(60):
        await store.sync("/")
    looked = 0
    await other.set(PATHS.available_bookie(A), b"", None)
    await until(lambda: looked > 0)
    for _ in range(60):
        await store.sync("/")
    assert (written, registration.present) == (first, True)
    await registration.unregister()


@pytest.mark.rule("V5", "Z7", "Z1")
@pytest.mark.parametrize("read_only", [False, True])
async def test_a_lost_session_is_followed_by_a_new_registration(
    service: Service, store: MetadataStore, other: MetadataStore, read_only: bool
) -> None:
    """On every kind of store; in the mode it had."""
    registration = await bookies_in(store).register(A, INFO, read_only=read_only)
    before = store.session_id
    await service.expire(store)
    await until(lambda: store.session_id != before and registration.present)
    path = PATHS.read_only_bookie(A) if read_only else PATHS.available_bookie(A)
    await other.sync(path)
    assert await other.owner(path) == store.session_id
    await registration.unregister()


@pytest.mark.rule("Z7")
async def test_another_sessions_value_is_waited_out_and_never_deleted(
    service: Service, store: MetadataStore, other: MetadataStore
) -> None:
    path = PATHS.available_bookie(A)
    await other.create(path, b"", ephemeral=True, parents=True)
    registering = asyncio.create_task(bookies_in(store).register(A, INFO))
    for _ in range(10):
        await asyncio.sleep(0.01)
    assert not registering.done()
    assert await other.owner(path) == other.session_id
    await other.delete(path, None)
    registration = await registering
    assert await store.owner(path) == store.session_id
    await registration.unregister()


@pytest.mark.rule("Z7")
async def test_a_bookie_whose_id_is_in_use_does_not_start(memory_service: MemoryService) -> None:
    first, second = bookies_in(await memory_service.connect()), bookies_in(await memory_service.connect())
    registration = await first.register(A, INFO)
    with pytest.raises(KeyExistsError):
        await second.register(A, INFO, foreign_wait_s=0.05)
    await registration.unregister()


async def test_the_new_mode_is_published_before_the_old_one_goes(memory_service: MemoryService) -> None:
    store = await memory_service.connect()
    registration = await bookies_in(store).register(A, INFO)
    seen: list[tuple[bool, bool]] = []
    original = memory_service.cluster.write

    def write(session: int, job: object) -> object:
        result = original(session, job)  # type: ignore[arg-type, var-annotated]
        nodes = memory_service.cluster.dump()
        seen.append((PATHS.available_bookie(A) in nodes, PATHS.read_only_bookie(A) in nodes))
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory_service.cluster, "write", write)
        await registration.set_read_only(True)
        await registration.set_read_only(False)
    assert seen[0] == (True, True)
    assert (False, False) not in seen
    assert seen[-1] == (True, False)
    await registration.unregister()


@pytest.mark.rule("M8", "Z4")
async def test_a_registration_without_answer_is_found_to_be_ours(memory_service: MemoryService) -> None:
    store = await memory_service.connect()
    await store.create(PATHS.available, parents=True)
    memory_service.cluster.interference = Losing(create=[REPLY_LOST], delete=[REPLY_LOST])
    registration = await bookies_in(store).register(A, INFO)
    assert await store.owner(PATHS.available_bookie(A)) == store.session_id
    await registration.unregister()
    assert await store.exists(PATHS.available_bookie(A)) is None


@pytest.mark.rule("V5", "Z7")
async def test_a_registration_is_not_taken_for_published_when_its_session_ended_under_it(
    memory_service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write's failure is told before the store says that the session is another one."""
    store = await memory_service.connect()
    registration = await bookies_in(store).register(A, INFO)
    create = store.create
    ends = [SessionExpiredError("gone")]

    async def ended(path: str, *arguments: Any, **options: Any) -> Any:
        if ends:
            raise ends.pop()
        return await create(path, *arguments, **options)

    monkeypatch.setattr(store, "create", ended)
    await registration.set_read_only(True)
    assert not ends and await store.owner(PATHS.read_only_bookie(A)) == store.session_id
    await registration.unregister()


@pytest.mark.rule("V5")
async def test_a_value_that_somebody_deleted_comes_back(memory_service: MemoryService) -> None:
    store, other = await memory_service.connect(), await memory_service.connect()
    registration = await bookies_in(store).register(A, INFO)
    await other.delete(PATHS.available_bookie(A), None)
    nodes = memory_service.cluster.dump
    await until(lambda: PATHS.available_bookie(A) in nodes())
    await registration.unregister()


@pytest.mark.rule("Z1", "V5")
async def test_a_bookie_that_is_cut_off_is_not_present_and_returns(memory_service: MemoryService) -> None:
    store, other = await memory_service.connect(), await memory_service.connect()
    registration = await bookies_in(store).register(A, INFO)
    memory_service.cluster.suspend(store)
    assert not registration.present
    memory_service.cluster.expire(store)
    assert await bookies_in(other).writable() == []
    memory_service.cluster.resume(store)
    await until(lambda: registration.present)
    assert await bookies_in(other).writable() == [A]
    await registration.unregister()


async def test_addresses_last_seen_help_through_an_outage(memory_service: MemoryService) -> None:
    store, bookie = await memory_service.connect(), await memory_service.connect()
    registration = await bookies_in(bookie).register(A, INFO)
    bookies = bookies_in(store)
    assert await bookies.address(A) == Address("10.0.0.1", 3181)
    memory_service.cluster.begin_outage()
    assert await bookies.address(A) == Address("10.0.0.1", 3181)
    memory_service.cluster.end_outage()
    await registration.unregister()
    with pytest.raises(BookieUnavailableError):
        await bookies.address(A)


async def test_a_bookie_in_both_modes_counts_as_writable(memory_service: MemoryService) -> None:
    store = await memory_service.connect()
    for path in (PATHS.available_bookie(A), PATHS.read_only_bookie(A), PATHS.read_only_bookie(BookieId("b:1"))):
        await store.create(path, parents=True)
    assert (await bookies_in(store).writable(), await bookies_in(store).read_only()) == ([A], ["b:1"])


@pytest.mark.rule("Z5")
async def test_watchers_are_called_on_a_timer_too(
    memory_service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bookkeeper.meta.records.bookies.RELIST_S", 0.01)
    calls = Calls()
    watch = bookies_in(await memory_service.connect()).watch(calls)
    await calls.wait()
    await calls.wait()
    watch.close()


async def test_known_bookies_are_those_with_a_cookie(memory_service: MemoryService) -> None:
    store = await memory_service.connect()
    with pytest.raises(NoClusterError):
        await bookies_in(store).writable()
    cookie = Cookie(bookie_id=A, journal_dirs=("/j",), ledger_dirs=("/l",), instance_id=None)
    await Cookies(store, PATHS).write(cookie, None)
    assert await bookies_in(store).known() == [A]


@pytest.mark.rule("X29")
async def test_registrations_and_cookies_that_no_bookie_can_have_are_passed_over(memory_service: MemoryService) -> None:
    store = await memory_service.connect()
    for name in (A, "two\nlines:1", "\x1b[2J:1", "a name", "caf\u00e9:1"):
        for place in (PATHS.available, PATHS.read_only, PATHS.cookies):
            await store.create(f"{place}/{name}", parents=True)
    bookies = bookies_in(store)
    assert (await bookies.writable(), await bookies.registered(), await bookies.known()) == ([A], {A}, [A])


@pytest.mark.rule("X29")
async def test_of_one_registration_that_cannot_be_read_its_bookie_is_named(memory_service: MemoryService) -> None:
    store = await memory_service.connect()
    await store.create(PATHS.available_bookie(A), b"\x32\xff", parents=True)
    with pytest.raises(MetadataFormatError, match="a:1: a bookie's registration of 2 bytes cannot be decoded"):
        await bookies_in(store).address(A)


@pytest.mark.rule("A11")
async def test_a_bookie_is_forgotten_in_a_write_that_finds_it_absent(
    store: MetadataStore, other: MetadataStore
) -> None:
    """On every kind of store."""
    bookies, cookies = bookies_in(store), Cookies(store, PATHS)
    cookie = Cookie(bookie_id=A, journal_dirs=("/j",), ledger_dirs=("/l",), instance_id="x")
    for path in (PATHS.available, PATHS.read_only):
        await store.create(path, parents=True)
    version = await cookies.write(cookie, None)
    registration = await bookies_in(other).register(A, INFO)
    with pytest.raises(IllegalOperationError, match="a:1 was registered meanwhile"):
        await bookies.forget(A, version, await bookies.times_named(A))
    await registration.set_read_only(True)
    with pytest.raises(IllegalOperationError, match="a:1 was registered meanwhile"):
        await bookies.forget(A, version, await bookies.times_named(A))
    await registration.unregister()
    await cookies.write(cookie, version)
    with pytest.raises(IllegalOperationError, match="a:1 is not forgotten: its cookie was changed meanwhile"):
        await bookies.forget(A, version, await bookies.times_named(A))
    assert await bookies.known() == [A]
    await bookies.forget(A, Version(version + 1), await bookies.times_named(A))
    assert await bookies.known() == [] == await bookies.writable() == await bookies.read_only()
    with pytest.raises(IllegalOperationError, match="has no cookie any more"):
        await bookies.forget(A, version, await bookies.times_named(A))


@pytest.mark.rule("A11", "M8")
@pytest.mark.parametrize("fate", [REPLY_LOST, REQUEST_LOST])
async def test_a_bookie_whose_forgetting_has_no_answer_is_forgotten(memory_service: MemoryService, fate: Fate) -> None:
    store = await memory_service.connect()
    cookies = Cookies(store, PATHS)
    await store.create(PATHS.available, parents=True)
    cookie = Cookie(bookie_id=A, journal_dirs=("/j",), ledger_dirs=("/l",), instance_id="x")
    version = await cookies.write(cookie, None)
    named = await bookies_in(store).times_named(A)
    memory_service.cluster.interference = Losing(multi=[fate])
    await bookies_in(store).forget(A, version, named)
    assert await cookies.known() == []


@pytest.mark.rule("A11")
async def test_who_is_forgotten_while_it_was_away_does_not_come_back_by_itself(
    service: Service, store: MetadataStore, other: MetadataStore, caplog: pytest.LogCaptureFixture
) -> None:
    """On every kind of store: its session is lost, its cookie goes, and its new session does not register."""
    bookies, cookies = bookies_in(other), Cookies(other, PATHS)
    await other.create(PATHS.available, parents=True)
    with pytest.raises(CookieError, match=r"the cluster has forgotten a:1 \(bk bookies forget\)"):
        await bookies_in(store).register(A, INFO, with_cookie=True)
    cookie = Cookie(bookie_id=A, journal_dirs=("/j",), ledger_dirs=("/l",), instance_id="x")
    version = await cookies.write(cookie, None)
    registration = await bookies_in(store).register(A, INFO, read_only=True, with_cookie=True)
    await registration.set_read_only(False)
    assert await bookies.known() == [A]
    assert (await bookies.writable(), await bookies.read_only()) == ([A], [])

    async def forgotten() -> bool:
        try:
            await bookies.forget(A, version, await bookies.times_named(A))
        except IllegalOperationError:
            return False
        return True

    create = registration._create

    async def after_it_was_forgotten(path: str) -> None:
        await gone.wait()
        await create(path)

    gone = asyncio.Event()
    registration._create = after_it_was_forgotten  # type: ignore[method-assign]
    await service.expire(store)
    while not await forgotten():  # noqa: ASYNC110 (until the service has ended the session)
        await asyncio.sleep(0.01)
    gone.set()
    await until(lambda: "the cluster has forgotten a:1" in caplog.text)
    assert await bookies.writable() == [] and not registration.present
    await cookies.write(cookie, None)  # somebody has put it back: it is known again
    await until(lambda: registration.present)
    assert caplog.text.count("is not registered any more") == 1
    await registration.unregister()


@pytest.mark.rule("A2b", "Z6")
async def test_the_life_of_a_bookie_is_that_of_now_though_the_session_lags(memory_service: MemoryService) -> None:
    """Whoever sees an earlier life swaps a target in for what it held before it was started again."""
    store, other = await memory_service.connect(), await memory_service.connect()
    cookie = Cookie(bookie_id=A, journal_dirs=("/j",), ledger_dirs=("/l",), instance_id="i")
    await Cookies(other, PATHS).write(cookie, None)
    boot = PATHS.own("boot", A)
    await other.create(boot, b"1", parents=True)
    bookies = bookies_in(store)
    before = await bookies.incarnation(A)
    store.lag()
    await other.set(boot, b"2", None)
    assert await bookies.incarnation(A) != before
