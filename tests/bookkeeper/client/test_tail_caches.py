"""What a writer has appended last is at hand for readers of the same client: no more, no earlier, and in bounds."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from bookkeeper.client import tail_caches as module
from bookkeeper.client.config import ClientConfig
from bookkeeper.client.tail_caches import TailCache, TailCaches
from bookkeeper.errors import LedgerFencedError
from bookkeeper.ids import EntryId
from bookkeeper.ledger import Entry
from bookkeeper.wire import ReadEntry
from tests.bookkeeper.client.scripted import ScriptedCluster
from tests.examples_of import examples


def followed() -> tuple[TailCache, list[int]]:
    cache, heard = TailCache(), list[int]()
    cache.follow(lambda: heard.append(-9 if cache.ended else cache.last_add_confirmed))
    return cache, heard


def test_what_is_not_confirmed_is_not_handed_out() -> None:
    cache, heard = followed()
    cache.keep(0, [b"a", b"b", b"c"])
    assert cache.run_at(0) == [] and heard == []
    cache.confirm(EntryId(1))
    assert (cache.run_at(0), cache.run_at(1), cache.run_at(2)) == ([b"a", b"b"], [b"b"], [])
    cache.keep(3, [b"d"])
    cache.confirm(EntryId(3))
    assert cache.run_at(1) == [b"b", b"c", b"d"] and cache.run_at(1, 2) == [b"b", b"c"] and cache.run_at(3, 1) == [b"d"]
    cache.confirm(EntryId(2))
    assert heard == [1, 3] and cache.last_add_confirmed == 3, "it never falls"


def test_nothing_is_kept_while_nobody_follows() -> None:
    cache = TailCache()
    cache.keep(0, [b"a"])
    cache.confirm(EntryId(0))
    leave = cache.follow(lambda: None)
    other = cache.follow(lambda: None)
    assert cache.run_at(0) == [], "it was written before"
    cache.keep(1, [b"b"])
    cache.confirm(EntryId(1))
    leave()
    leave()
    assert cache.run_at(1) == [b"b"], "the other one follows"
    other()
    assert cache.run_at(1) == []
    cache.validate_state()


def test_a_payload_that_its_owner_changes_is_handed_out_as_it_was_written() -> None:
    cache, _ = followed()
    changing = bytearray(b"before")
    cache.keep(0, [changing, memoryview(b"view")])
    changing[:] = b"behind"
    cache.confirm(EntryId(1))
    assert cache.run_at(0) == [b"before", b"view"]


def test_the_bytes_that_are_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TAIL_BYTES", 10)
    cache, _ = followed()
    for entry in range(4):
        cache.keep(entry, [b"%d234" % entry])
        cache.confirm(EntryId(entry))
        cache.validate_state()
    assert cache.run_at(1) == [] and cache.run_at(2) == [b"2234", b"3234"]
    cache.keep(4, [b"x" * 11])
    cache.confirm(EntryId(4))
    assert cache.run_at(4) == cache.run_at(3) == [], "larger than everything that may be kept"
    cache.keep(5, [b"y"])
    cache.confirm(EntryId(5))
    assert cache.run_at(5) == [b"y"]


def test_the_end_of_the_writer_is_told_once_and_keeps_nothing() -> None:
    caches = TailCaches()
    cache = caches.begin(7)
    heard = list[bool]()
    cache.follow(lambda: heard.append(cache.ended))
    assert caches.get(7) is cache and caches.get(8) is None
    cache.keep(0, [b"a"])
    cache.confirm(EntryId(0))
    caches.end(7)
    caches.end(7)
    cache.end()
    cache.keep(1, [b"b"])
    assert heard == [False, True] and caches.get(7) is None and cache.run_at(0) == [] and not len(caches)
    cache.validate_state()


class TailCacheMachine(RuleBasedStateMachine):
    """Against a list of everything that was written."""

    def __init__(self) -> None:
        super().__init__()
        self.cache, self.heard = followed()
        self.written: list[bytes] = []

    @rule(sizes=st.lists(st.integers(0, 400_000), min_size=1, max_size=5))
    def keep(self, sizes: list[int]) -> None:
        payloads = [b"%d" % (len(self.written) + at) + bytes(size) for at, size in enumerate(sizes)]
        self.cache.keep(len(self.written), payloads)
        self.written += payloads

    @precondition(lambda self: self.written)
    @rule(data=st.data())
    def confirm(self, data: st.DataObject) -> None:
        self.cache.confirm(EntryId(data.draw(st.integers(0, len(self.written) - 1))))

    @rule(entry=st.integers(0, 40), count_max=st.none() | st.integers(1, 3))
    def read(self, entry: int, count_max: int | None) -> None:
        found = self.cache.run_at(entry, count_max)
        end = min(self.cache.last_add_confirmed + 1, entry + (count_max or 1000))
        assert found == [] or found == self.written[entry:end]

    @invariant()
    def validate(self) -> None:
        self.cache.validate_state()
        if self.written and self.cache.last_add_confirmed == len(self.written) - 1 and len(self.written[-1]) < 400_000:
            assert self.cache.run_at(len(self.written) - 1) in ([], [self.written[-1]])


TestTailCacheMachine = TailCacheMachine.TestCase
TestTailCacheMachine.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)


def reads(cluster: ScriptedCluster) -> int:
    return sum(isinstance(request, ReadEntry) for bookie in cluster.bookies for request in bookie.requests)


@pytest.mark.rule("L3", "L9")
def test_a_reader_of_the_writers_client_asks_no_bookie_and_waits_for_none() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            async with await bk.open_ledger(ledger.id, recovery=False) as reader:
                seen: list[bytes] = []

                async def tail() -> None:
                    async for entry in reader.tail():
                        seen.append(entry.payload)

                tailing = asyncio.ensure_future(tail())
                await asyncio.sleep(0)
                for i in range(10):
                    await ledger.append_many([b"a%d" % i, b"b%d" % i])
                    for _ in range(5):
                        await asyncio.sleep(0)
                    assert seen == [letter + b"%d" % j for j in range(i + 1) for letter in (b"a", b"b")]
                confirmed, entry = await reader.read_last_add_confirmed_and_entry(4, timeout_ms=1000)
                assert confirmed == 19 and entry is not None and entry.payload == b"a2"
                assert reads(cluster) == 0
                await ledger.close()
                await asyncio.wait_for(tailing, 3)
                assert reader.closed and len(seen) == 20
            assert not len(bk.services.tails), "nothing of a closed ledger stays in the client"

    ScriptedCluster().run(story)


@pytest.mark.rule("L3", "L9")
def test_a_reader_goes_on_at_bookies_when_the_writer_of_its_client_has_ended() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger()
            await ledger.append(b"before")
            async with await bk.open_ledger(ledger.id, recovery=False) as reader:
                tailing = asyncio.ensure_future(collect(reader.tail()))
                await ledger.append(b"by the writer")
                await (await other.open_ledger(ledger.id)).close()
                with pytest.raises(LedgerFencedError):
                    await ledger.append(b"too late")
                assert await asyncio.wait_for(tailing, 10) == [b"before", b"by the writer"]
                assert reader.closed and reader.last_add_confirmed == 1

    ScriptedCluster().run(story)


@pytest.mark.rule("L3")
def test_a_reader_knows_at_once_what_the_writer_knows_and_leaves_nothing_behind() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(ClientConfig(explicit_lac_delay_ms=60_000)) as bk:
            ledger = await bk.create_ledger()
            await ledger.append_many([b"a", b"b"])
            cache = bk.services.tails.get(ledger.id)
            assert cache is not None
            async with await bk.open_ledger(ledger.id, recovery=False) as reader:
                assert reader.last_add_confirmed == 1, "bookies have not been told yet"
                await ledger.append(b"c")
                assert cache.run_at(2) == [b"c"]
            await ledger.append(b"d")
            assert cache.run_at(2) == cache.run_at(3) == []

    ScriptedCluster().run(story)


@pytest.mark.rule("L3")
def test_an_entry_that_came_and_is_not_confirmed_is_not_at_hand() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger()
            await ledger.append(b"a")
            async with await other.open_ledger(ledger.id, recovery=False) as reader:
                assert await reader.wait_last_add_confirmed(-1, timeout_ms=1000) == 0
                came = Entry(ledger.id, EntryId(1), EntryId(0), 2, b"b")
                reader._follower._ahead.on_answered_early(came)
                assert list(reader.take_ready(1)) == []
                await ledger.append(b"b")
                assert await reader.wait_last_add_confirmed(0, timeout_ms=1000) == 1
                assert list(reader.take_ready(1)) == [b"b"]

    ScriptedCluster().run(story)


@pytest.mark.rule("L9")
def test_a_reader_waits_for_bookies_again_when_the_writer_was_abandoned() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            async with await bk.open_ledger(ledger.id, recovery=False) as reader:
                tailing = asyncio.ensure_future(collect(reader.tail()))
                await ledger.append(b"x")
                await asyncio.sleep(10)
                assert reads(cluster) == 0
                await ledger.abandon()
                await asyncio.sleep(1)
                assert reads(cluster) > 0 and not len(bk.services.tails)
                await (await bk.open_ledger(ledger.id)).close()
                assert await asyncio.wait_for(tailing, 10) == [b"x"]

    ScriptedCluster().run(story)


@pytest.mark.rule("L3", "W11")
def test_with_deferred_sync_a_reader_hears_of_what_was_forced() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger(deferred_sync=True)
            async with await bk.open_ledger(ledger.id, recovery=False) as reader:
                await ledger.append(b"written")
                await asyncio.sleep(1)
                assert reader.last_add_confirmed == -1
                await ledger.force()
                assert reader.last_add_confirmed == 0 and reader.take_ready(0) == [b"written"]
                await ledger.append(b"not forced")
                assert list(reader.take_ready(1)) == []

    ScriptedCluster().run(story)


async def collect(entries: object) -> list[bytes]:
    return [entry.payload async for entry in entries]  # type: ignore[attr-defined]
