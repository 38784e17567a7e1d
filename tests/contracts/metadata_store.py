"""What every metadata store must do. Each implementation's tests inherit this class and bring a service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

import pytest

from bookkeeper.errors import (
    ClientClosedError,
    KeyExistsError,
    MetadataConflictError,
    MetadataError,
    MetadataRolledBackError,
    NoSuchKeyError,
    NotEmptyError,
)
from bookkeeper.meta.store import (
    Check,
    Create,
    Delete,
    MetadataStore,
    SessionState,
    Set,
    ValueFollower,
    Version,
    Versioned,
    ensure_created,
    ensure_deleted,
    get_or_none,
    names_below,
    put,
    settled_create,
    settled_set,
    settled_set_if,
    update,
)


class Service(Protocol):
    """A metadata service under test."""

    async def connect(self) -> MetadataStore:
        """Another session; the fixture closes it."""

    async def expire(self, store: MetadataStore) -> None:
        """End a session from outside; its client learns of it by itself."""


class Calls:
    """Counts callbacks and waits for them."""

    def __init__(self) -> None:
        self.count = 0
        self._event = asyncio.Event()

    def __call__(self) -> None:
        self.count += 1
        self._event.set()

    async def settle(self) -> None:
        """Let callbacks that come without a change (a watch that was just set) pass."""
        for _ in range(12):
            await asyncio.sleep(0.01)
        self.reset()

    def reset(self) -> None:
        self.count = 0
        self._event.clear()

    async def wait(self) -> None:
        async with asyncio.timeout(20):
            await self._event.wait()
        self._event.clear()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 (what is waited for happens in threads and other processes)
            await asyncio.sleep(0.01)


async def named_until(store: MetadataStore, follower: ValueFollower, path: str) -> set[str] | None:
    """What a follower names, up to the answer that has ``path``; None: it says that all may have changed."""
    named = set[str]()
    async with asyncio.timeout(20):
        while path not in named:
            await store.sync("/")
            if (some := await follower.changed()) is None:
                return None
            named.update(some)
    return named


class MetadataStoreContract:
    # -- values --------------------------------------------------------------------------------------------

    async def test_what_was_created_is_read_in_version_0(self, store: MetadataStore) -> None:
        assert await store.create("/a", b"one") == ("/a", 0)
        found = await store.get("/a")
        assert (found.value, found.version) == (b"one", 0)
        assert found.transaction > 0

    async def test_every_write_adds_one_to_the_version(self, store: MetadataStore) -> None:
        await store.create("/a", b"0")
        for version in range(3):
            assert await store.set("/a", b"x", Version(version)) == version + 1
        assert await store.exists("/a") == 3

    async def test_what_is_not_there_is_said_so(self, store: MetadataStore) -> None:
        assert await store.exists("/a") is None
        for ask in (store.get, store.children, store.owner):
            with pytest.raises(NoSuchKeyError):
                await ask("/a")
        with pytest.raises(NoSuchKeyError):
            await store.set("/a", b"", None)
        with pytest.raises(NoSuchKeyError):
            await store.delete("/a", None)

    @pytest.mark.rule("M1")
    async def test_a_write_over_a_stale_version_changes_nothing(self, store: MetadataStore) -> None:
        await store.create("/a", b"1")
        await store.set("/a", b"2", Version(0))
        with pytest.raises(MetadataConflictError):
            await store.set("/a", b"3", Version(0))
        with pytest.raises(MetadataConflictError):
            await store.delete("/a", Version(0))
        found = await store.get("/a")
        assert (found.value, found.version) == (b"2", 1)

    @pytest.mark.rule("A2a")
    async def test_a_write_that_names_a_life_does_not_reach_the_next_one(self, store: MetadataStore) -> None:
        await store.create("/a", b"1")
        first = await store.get("/a")
        assert first.created_txn > 0 and await store.set("/a", b"2", Version(0), created_txn=first.created_txn) == 1
        seen = await store.get("/a")
        assert (seen.version, seen.created_txn) == (1, first.created_txn)
        await store.delete("/a", None)
        with pytest.raises(NoSuchKeyError):
            await store.set("/a", b"3", Version(1), created_txn=first.created_txn)
        await store.create("/a", b"other")
        await store.set("/a", b"other", Version(0))  # the same version again
        with pytest.raises(NoSuchKeyError, match="created anew"):
            await store.set("/a", b"3", Version(1), created_txn=first.created_txn)
        with pytest.raises(NoSuchKeyError, match="created anew"):
            await store.set("/a", b"3", None, created_txn=first.created_txn)
        again = await store.get("/a")
        assert (again.value, again.version) == (b"other", 1) and again.created_txn > first.created_txn
        with pytest.raises(MetadataConflictError):
            await store.set("/a", b"3", Version(0), created_txn=again.created_txn)

    async def test_create_refuses_what_exists(self, store: MetadataStore) -> None:
        await store.create("/a", b"1")
        with pytest.raises(KeyExistsError):
            await store.create("/a", b"2")
        assert (await store.get("/a")).value == b"1"

    async def test_what_may_be_missing_is_read_written_and_removed_all_the_same(self, store: MetadataStore) -> None:
        assert await get_or_none(store, "/a/b", fresh=True) is None
        assert await names_below(store, "/a", fresh=True) == []
        await ensure_created(store, "/a/b", b"1")
        await ensure_created(store, "/a/b", b"2")
        found = await get_or_none(store, "/a/b")
        assert found is not None and found.value == b"1"
        assert found.over(1) == Versioned(1, found.version) and found.over(1).created_txn == found.created_txn
        await put(store, "/a/b", b"3")
        await put(store, "/a/c", b"4", ephemeral=True)
        assert (await store.get("/a/b")).value == b"3"
        assert await store.owner("/a/c") == store.session_id
        for _ in range(2):
            await ensure_deleted(store, "/a/b")
        assert await names_below(store, "/a") == ["c"]

    async def test_parents_are_made_only_on_demand(self, store: MetadataStore) -> None:
        with pytest.raises(NoSuchKeyError):
            await store.create("/a/b/c")
        await store.create("/a/b/c", b"x", parents=True)
        assert await store.children("/a") == ["b"]
        assert (await store.get("/a/b")).value == b""

    async def test_children_are_sorted_names(self, store: MetadataStore) -> None:
        await store.create("/a")
        for name in ("c", "a", "b"):
            await store.create(f"/a/{name}")
        assert await store.children("/a") == ["a", "b", "c"]

    async def test_a_parent_is_not_deleted_before_its_children(self, store: MetadataStore) -> None:
        await store.create("/a/b", parents=True)
        with pytest.raises(NotEmptyError):
            await store.delete("/a", None)
        await store.delete("/a/b", None)
        await store.delete("/a", None)
        assert await store.exists("/a") is None

    async def test_a_path_that_is_none_is_refused(self, store: MetadataStore) -> None:
        for path in ("a", "/a/", "//a", "/a/../b", ""):
            with pytest.raises(ValueError, match="not a path"):
                await store.get(path)

    async def test_values_are_bytes_of_any_kind(self, store: MetadataStore) -> None:
        value = bytes(range(256)) * 100
        await store.create("/a", value)
        assert (await store.get("/a")).value == value

    # -- sequential and ephemeral --------------------------------------------------------------------------

    async def test_sequential_names_count_the_children_ever_made(self, store: MetadataStore) -> None:
        await store.create("/a")
        assert (await store.create("/a/ID-", sequential=True))[0] == "/a/ID-0000000000"
        await store.create("/a/other")
        await store.delete("/a/ID-0000000000", None)
        assert (await store.create("/a/ID-", sequential=True, ephemeral=True))[0] == "/a/ID-0000000002"

    async def test_numbered_values_come_together_and_go_with_their_session(
        self, service: Service, store: MetadataStore
    ) -> None:
        other = await service.connect()
        await store.create("/a")
        paths = await other.create_numbered("/a/ID-", 3)
        paths += await other.create_numbered("/a/ID-", 1)
        assert paths == [f"/a/ID-{number:010d}" for number in range(4)]
        assert await other.owner(paths[1]) == other.session_id
        with pytest.raises(NoSuchKeyError):
            await other.create_numbered("/nowhere/ID-", 2)
        await other.close()
        await store.sync("/a")
        assert await store.children("/a") == []
        assert (await store.create("/a/ID-", sequential=True))[0] == "/a/ID-0000000004"

    async def test_an_ephemeral_value_goes_with_its_session(self, service: Service, store: MetadataStore) -> None:
        other = await service.connect()
        await other.create("/e", b"x", ephemeral=True)
        assert await store.owner("/e") == other.session_id != store.session_id
        await other.close()
        assert await store.exists("/e") is None

    async def test_an_ordinary_value_has_no_owner_and_stays(self, service: Service, store: MetadataStore) -> None:
        other = await service.connect()
        await other.create("/p")
        assert await other.owner("/p") is None
        await other.close()
        await store.sync("/p")
        assert await store.exists("/p") == 0

    async def test_an_ephemeral_value_has_no_children(self, store: MetadataStore) -> None:
        await store.create("/e", ephemeral=True)
        with pytest.raises(MetadataError):
            await store.create("/e/child")

    # -- multi ---------------------------------------------------------------------------------------------

    async def test_multi_does_all(self, store: MetadataStore) -> None:
        await store.create("/a", b"1")
        await store.create("/b")
        assert await store.multi(
            [Check("/a", Version(0)), Set("/a", b"2", Version(0)), Create("/c", b"3"), Delete("/b", None)]
        ) == [None, 1, 0, None]
        assert (await store.get("/a")).value == b"2"
        assert await store.exists("/b") is None
        assert (await store.get("/c")).value == b"3"

    @pytest.mark.rule("M9")
    async def test_multi_does_nothing_if_one_part_fails(self, store: MetadataStore) -> None:
        await store.create("/a", b"1")
        await store.set("/a", b"2", Version(0))
        with pytest.raises(MetadataConflictError):
            await store.multi([Create("/b"), Check("/a", Version(0)), Delete("/a", None)])
        with pytest.raises(KeyExistsError):
            await store.multi([Set("/a", b"3", None), Create("/a")])
        assert await store.exists("/b") is None
        assert (await store.get("/a")).value == b"2"

    # -- helpers over it -----------------------------------------------------------------------------------

    @pytest.mark.rule("M1")
    async def test_no_update_is_lost_in_a_storm_of_conflicts(self, service: Service, store: MetadataStore) -> None:
        await store.create("/n", b"")
        sessions = [store, await service.connect(), await service.connect()]

        async def add(session: MetadataStore, letter: bytes) -> None:
            for _ in range(8):
                await update(session, "/n", lambda value: value + letter)

        await asyncio.gather(*(add(session, bytes([65 + i])) for i, session in enumerate(sessions)))
        await store.sync("/n")
        found = await store.get("/n")
        assert sorted(found.value) == sorted(b"A" * 8 + b"B" * 8 + b"C" * 8)
        assert found.version == 24

    @pytest.mark.rule("M5")
    async def test_only_one_of_several_creators_wins(self, service: Service, store: MetadataStore) -> None:
        sessions = [store, await service.connect(), await service.connect()]
        results = await asyncio.gather(
            *(settled_create(session, "/one", b"%d" % i) for i, session in enumerate(sessions)), return_exceptions=True
        )
        assert sorted(str(result).partition(" ")[0] for result in results) == ["/one", "/one", "0"]
        assert [type(result) for result in results if result != 0] == [KeyExistsError, KeyExistsError]

    async def test_settled_set_says_who_was_first(self, service: Service, store: MetadataStore) -> None:
        other = await service.connect()
        await store.create("/a")
        results = await asyncio.gather(
            settled_set(store, "/a", b"1", Version(0)),
            settled_set(other, "/a", b"2", Version(0)),
            return_exceptions=True,
        )
        assert [result for result in results if not isinstance(result, BaseException)] == [1]

    @pytest.mark.rule("A2b", "M1")
    async def test_settled_set_if_writes_only_where_everything_else_is_as_it_was(self, store: MetadataStore) -> None:
        for path in ("/a", "/b"):
            await store.create(path)
        created_txn = (await store.get("/a")).created_txn
        as_it_was = [Check("/b", Version(0))]
        assert await settled_set_if(store, "/a", b"1", Version(0), as_it_was, created_txn=created_txn) == 1
        with pytest.raises(MetadataConflictError):
            await settled_set_if(store, "/a", b"2", Version(0), as_it_was, created_txn=created_txn)
        await store.set("/b", b"other", None)
        with pytest.raises(MetadataConflictError):
            await settled_set_if(store, "/a", b"2", Version(1), as_it_was, created_txn=created_txn)
        await store.delete("/b", None)
        with pytest.raises(MetadataConflictError, match="is gone"):
            await settled_set_if(store, "/a", b"2", Version(1), as_it_was, created_txn=created_txn)
        assert (await store.get("/a")).value == b"1"
        await store.delete("/a", None)
        await store.create("/a")
        await store.create("/b")
        with pytest.raises(NoSuchKeyError):
            await settled_set_if(store, "/a", b"2", Version(0), as_it_was, created_txn=created_txn)
        assert (await store.get("/a")).value == b""

    # -- watches -------------------------------------------------------------------------------------------

    @pytest.mark.rule("Z5")
    async def test_every_kind_of_change_calls_back(self, service: Service, store: MetadataStore) -> None:
        other, calls = await service.connect(), Calls()
        store.watch("/a", calls)
        await calls.settle()
        for change in (
            lambda: other.create("/a"),
            lambda: other.set("/a", b"1", None),
            lambda: other.set("/a", b"2", None),
            lambda: other.delete("/a", None),
            lambda: other.create("/a"),
        ):
            await change()
            await calls.wait()
            await calls.settle()

    @pytest.mark.rule("Z5")
    async def test_children_that_come_and_go_call_back(self, service: Service, store: MetadataStore) -> None:
        other, calls = await service.connect(), Calls()
        store.watch_children("/a", calls)
        await calls.settle()
        await other.create("/a")
        await calls.settle()
        for change in (lambda: other.create("/a/b"), lambda: other.create("/a/c"), lambda: other.delete("/a/b", None)):
            await change()
            await calls.wait()
            await calls.settle()

    @pytest.mark.rule("Z5")
    async def test_no_change_after_a_read_is_missed(self, service: Service, store: MetadataStore) -> None:
        """Read, be called, read again: the last value is always seen."""
        other, calls = await service.connect(), Calls()
        await store.create("/a", b"0")
        watch = store.watch("/a", calls)
        seen = [int((await store.get("/a")).value)]

        async def read() -> None:
            while seen[-1] < 40:
                await calls.wait()
                seen.append(int((await store.get("/a")).value))

        reader = asyncio.create_task(read())
        for number in range(1, 41):
            await other.set("/a", b"%d" % number, None)
        await reader
        assert seen == sorted(seen)
        watch.close()

    async def test_a_store_sees_its_own_changes(self, store: MetadataStore) -> None:
        calls = Calls()
        store.watch("/a", calls)
        await calls.settle()
        await store.create("/a")
        await calls.wait()

    async def test_a_closed_watch_is_silent(self, service: Service, store: MetadataStore) -> None:
        other, calls, open_calls = await service.connect(), Calls(), Calls()
        watch = store.watch("/a", calls)
        store.watch("/a", open_calls)
        await open_calls.settle()
        calls.reset()
        watch.close()
        watch.close()
        await other.create("/a")
        await open_calls.wait()
        assert calls.count == 0

    @pytest.mark.rule("Z3")
    async def test_callbacks_come_on_the_loop_and_not_inside_a_call(self, store: MetadataStore) -> None:
        inside, where = [False], []
        loop = asyncio.get_running_loop()
        called = asyncio.Event()

        def callback() -> None:
            where.append((asyncio.get_running_loop() is loop, inside[0]))
            called.set()

        inside[0] = True
        store.watch("/a", callback)
        inside[0] = False
        await store.create("/a")
        async with asyncio.timeout(20):
            await called.wait()
        assert set(where) == {(True, False)}

    # -- sessions ------------------------------------------------------------------------------------------

    @pytest.mark.rule("Z1")
    async def test_an_expired_session_is_told_and_replaced(self, service: Service, store: MetadataStore) -> None:
        other, states, calls = await service.connect(), list[SessionState](), Calls()
        other.on_session(states.append)
        other.watch("/a", calls)
        await other.create("/e", ephemeral=True)
        await calls.settle()
        old = other.session_id
        await service.expire(other)
        await until(lambda: SessionState.LOST in states and states[-1] is SessionState.CONNECTED)
        assert other.session is SessionState.CONNECTED
        assert other.session_id != old
        await calls.wait()
        await store.sync("/e")
        assert await store.exists("/e") is None
        await other.create("/e", ephemeral=True)
        assert await store.owner("/e") == other.session_id

    @pytest.mark.rule("Z5")
    async def test_watches_outlive_a_session(self, service: Service, store: MetadataStore) -> None:
        other, states, calls = await service.connect(), list[SessionState](), Calls()
        other.on_session(states.append)
        other.watch("/a", calls)
        other.watch_children("/", calls)
        await calls.settle()
        await service.expire(other)
        await until(lambda: SessionState.LOST in states and states[-1] is SessionState.CONNECTED)
        await calls.settle()
        await store.create("/a")
        await calls.wait()

    # -- followers -----------------------------------------------------------------------------------------

    async def test_a_follower_names_what_was_written_since_it_was_read(
        self, service: Service, store: MetadataStore
    ) -> None:
        other = await service.connect()
        for path in ("/a", "/b", "/c"):
            await store.create(path, b"0")
        follower = other.follow_values()
        assert await follower.changed() is None, "nothing is known yet"
        for path in ("/a", "/b"):
            assert (await follower.get(path)).value == b"0"
        for value in (b"1", b"2"):
            await store.set("/a", value, None)
            named = await named_until(other, follower, "/a")
            assert named is not None and "/b" not in named
            found = await follower.get("/a")
            assert found.value == value and found.version == int(value)
        with pytest.raises(NoSuchKeyError):
            await follower.get("/none")
        follower.close()
        follower.close()

    async def test_a_follower_that_lost_its_session_misses_nothing(
        self, service: Service, store: MetadataStore
    ) -> None:
        other, states = await service.connect(), list[SessionState]()
        await store.create("/a", b"0")
        follower = other.follow_values()
        await follower.changed()
        await follower.get("/a")
        other.on_session(states.append)
        await service.expire(other)
        await store.set("/a", b"1", None)
        await until(lambda: SessionState.LOST in states and states[-1] is SessionState.CONNECTED)
        named = await named_until(other, follower, "/a")
        assert named is None or "/a" in named
        assert (await follower.get("/a")).value == b"1"
        await store.set("/a", b"2", None)
        assert "/a" in (await named_until(other, follower, "/a") or ["/a"])

    async def test_a_closed_store_refuses_work(self, service: Service) -> None:
        store = await service.connect()
        await store.close()
        await store.close()
        with pytest.raises(ClientClosedError):
            await store.get("/")
        with pytest.raises(ClientClosedError):
            await store.create("/a")

    @pytest.mark.rule("M10", "Z14")
    async def test_a_store_that_shows_less_than_was_seen_is_not_written(self, store: MetadataStore) -> None:
        await store.create("/a")
        await store.check_not_rolled_back(store.last_transaction)
        with pytest.raises(MetadataRolledBackError):
            await store.check_not_rolled_back(store.last_transaction + 1_000_000)
        with pytest.raises(MetadataRolledBackError):
            await store.set("/a", b"", None)
        assert (await store.get("/a")).version == 0

    @pytest.mark.rule("M10", "Z14")
    async def test_a_refused_write_shows_how_far_the_store_has_come(
        self, service: Service, store: MetadataStore
    ) -> None:
        """What others had done was forgotten with the refusal: an older state that came next was not known as one."""
        other = await service.connect()
        for number in range(5):
            await other.create(f"/{number}")
        assert store.last_transaction < other.last_transaction
        with pytest.raises(NoSuchKeyError):
            await store.delete("/none", None)
        assert store.last_transaction >= other.last_transaction
