"""Several journals written as one: the contract of one, and what happens when members fail, lag and come back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from bookkeeper.metrics import Metrics
from journal_manager import (
    EditLog,
    EditLogConfig,
    JournalClosedError,
    JournalCorruptionError,
    JournalError,
    JournalFailedError,
    JournalFencedError,
    JournalStats,
    JournalUnavailableError,
    JournalWriter,
    Member,
    NotEnoughJournalsError,
    OpTooLargeError,
    RequestId,
    SegmentInfo,
    SegmentWriter,
    TxId,
    open_reader,
    open_writer,
    read_ops,
    replicated,
)
from journal_manager.backends import memory, set_copies
from journal_manager.backends.journal_set import SetWriter
from journal_manager.backends.memory import MemoryHub
from journal_manager.edits import Batch, encode_batch
from journal_manager.errors import UnsupportedCapabilityError
from journal_manager.journals.capabilities import CopySource, Discard, OrphanSweep, Upgrade, capability
from journal_manager.journals.set_rules import MemberState
from tests.contracts.journal_backend import Journal, JournalBackendContract, closing
from tests.journal_manager.replicas import Ledger
from tests.spark_wal.webhdfs.virtual import in_virtual_time


class TestJournalSet(JournalBackendContract):
    @pytest.fixture
    async def journal(self) -> AsyncIterator[Journal]:
        async for journal in closing(Journal("set:", {"members": Places().members})):
            yield journal


class Places:
    """A shared, a required and two redundant members in memory, each of which can fail."""

    def __init__(self) -> None:
        self.hub = MemoryHub()
        self.members = [
            Member("mem:one", options={"hub": self.hub}),
            Member("mem:two", options={"hub": self.hub}),
            Member("mem:required", required=True, options={"hub": self.hub}),
            Member("mem:shared", shared=True, options={"hub": self.hub}),
        ]
        self.calls: list[tuple[str, str]] = []
        """What the members were asked: (step, member)."""
        self.broken: dict[tuple[str, str], JournalError] = {}
        self.held: dict[str, asyncio.Event] = {}
        """Appends of a member wait for it."""

    async def log(self, **config: Any) -> EditLog:
        return await EditLog.open("set:", members=self.members, config=EditLogConfig(**config))

    async def edits(self, name: str) -> list[bytes]:
        async with await open_reader(f"mem:{name}", hub=self.hub) as reader:
            first = (await reader.segments())[0].first
            return [op.body async for op in read_ops(reader, first)]

    def name_of(self, journal: memory.MemoryJournal) -> str:
        return next(name for name, place in self.hub.places.items() if place is journal)

    def note(self, step: str, journal: memory.MemoryJournal) -> None:
        name = self.name_of(journal)
        self.calls.append((step, name))
        if (error := self.broken.get((step, name))) is not None:
            raise error

    def fail(self, step: str, name: str, error: JournalError | None = None) -> None:
        self.broken[step, name] = error or JournalUnavailableError(f"{name} is broken")

    def patch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        append, start, finalize = (
            memory.MemorySegmentWriter.append,
            memory.MemoryWriter.start_segment,
            memory.MemoryWriter.finalize_segment,
        )

        async def noted_append(segment: memory.MemorySegmentWriter, batch: Batch) -> None:
            self.note("append", segment._place)
            if (hold := self.held.get(self.name_of(segment._place))) is not None:
                await hold.wait()
            await append(segment, batch)

        def begin_append(segment: memory.MemorySegmentWriter, batch: Batch) -> Awaitable[None]:
            return noted_append(segment, batch)

        async def noted_start(writer: memory.MemoryWriter, first: TxId, layout: int) -> SegmentWriter:
            self.note("start", writer._place)
            return await start(writer, first, layout)

        async def noted_finalize(writer: memory.MemoryWriter, first: TxId, last: TxId) -> SegmentInfo:
            self.note("finalize", writer._place)
            return await finalize(writer, first, last)

        monkeypatch.setattr(memory.MemorySegmentWriter, "append", begin_append)
        monkeypatch.setattr(memory.MemoryWriter, "start_segment", noted_start)
        monkeypatch.setattr(memory.MemoryWriter, "finalize_segment", noted_finalize)


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> Iterator[Places]:
    found = Places()
    found.patch(monkeypatch)
    yield found


def set_of(log: EditLog) -> SetWriter:
    writer = log._writer
    assert isinstance(writer, SetWriter)
    return writer


def off(log: EditLog) -> list[str]:
    return [member.uri for member in set_of(log).status() if member.state is MemberState.OFF]


ALL = ("shared", "required", "one", "two")


async def test_every_member_gets_every_edit_and_the_shared_one_first(places: Places) -> None:
    log = await places.log()
    await log.log(b"a")
    assert places.calls == [(step, name) for step in ("start", "append") for name in ALL]
    await log.log(b"b")
    await log.close()
    for name in ALL:
        assert await places.edits(name) == [b"a", b"b"]


@pytest.mark.parametrize("step", ["start", "append", "finalize"])
async def test_a_redundant_member_that_fails_is_off_and_joins_at_the_next_segment(places: Places, step: str) -> None:
    log = await places.log()
    await log.log(b"a")
    await log.roll()
    places.fail(step, "one")
    await log.log(b"b")
    await log.log(b"c")
    await log.roll()
    assert off(log) == ["mem:one"] and "broken" in (set_of(log).status()[2].problem or "")
    places.broken.clear()
    await log.log(b"d")
    assert off(log) == []
    await log.close()
    for name in ALL:
        assert await places.edits(name) == [b"a", b"b", b"c", b"d"]


async def test_a_member_that_is_off_is_released(places: Places) -> None:
    log = await places.log()
    await log.log(b"a")
    writer = next(writer for member, writer in set_of(log)._writers.items() if member.uri == "mem:one")
    places.fail("append", "one")
    await log.log(b"b")
    with pytest.raises(JournalClosedError):
        await writer.segments()
    await log.close()


async def test_nothing_is_in_another_member_before_it_is_in_the_leading_one(places: Places) -> None:
    log = await places.log()
    await log.log(b"a")
    places.held["shared"] = asyncio.Event()
    waiting = log.log(b"b")
    await asyncio.sleep(0.01)
    assert not waiting.done() and await places.edits("required") == await places.edits("one") == [b"a"]
    places.held["shared"].set()
    await waiting
    await log.close()


async def test_no_batch_overtakes_another_in_any_member(places: Places) -> None:
    log = await places.log(transmit_bytes=1)
    await log.log(b"a")
    places.calls.clear()
    places.held["required"] = asyncio.Event()
    waits = []
    for body in (b"b", b"c"):
        waits.append(log.log(body))
        await asyncio.sleep(0.01)
    assert places.calls == [("append", "shared"), ("append", "required"), ("append", "shared")]
    places.held["required"].set()
    await asyncio.gather(*waits)
    await log.close()
    for name in ALL:
        assert await places.edits(name) == [b"a", b"b", b"c"]


@pytest.mark.rule("J4")
async def test_behind_a_batch_that_a_required_member_lacks_it_gets_no_other(places: Places) -> None:
    writer = await open_writer("set:", members=places.members)
    segment = await writer.start_segment(TxId(1), 1)
    places.fail("append", "required")
    sent = [segment.append(encode_batch(TxId(first), [(0, b"x")])) for first in (1, 2)]
    with pytest.raises(JournalUnavailableError):
        await sent[0]
    places.broken.clear()
    with pytest.raises(JournalUnavailableError):
        await sent[1]
    assert places.calls.count(("append", "required")) == 1 and ("append", "one") not in places.calls
    await segment.abort()
    await writer.close()


async def test_two_members_that_fail_by_turns_leave_the_whole_log_readable(places: Places) -> None:
    log = await places.log()
    for round_ in range(6):
        places.broken.clear()
        places.fail("append", "one" if round_ % 2 else "two")
        for n in range(3):
            await log.log(b"%d.%d" % (round_, n))
        await log.roll()
    await log.close()
    expected = [b"%d.%d" % (round_, n) for round_ in range(6) for n in range(3)]
    assert await places.edits("shared") == await places.edits("required") == expected
    assert len(await places.edits("two")) == 18 and len(await places.edits("one")) >= 15


@pytest.mark.parametrize("name", ["shared", "required"])
@pytest.mark.parametrize("step", ["start", "append", "finalize"])
async def test_a_required_member_that_fails_is_fatal_and_later_ones_are_not_asked(
    places: Places, step: str, name: str
) -> None:
    log = await places.log(patience_s=0.01)
    await log.log(b"a")
    await log.roll()
    places.calls.clear()
    places.fail(step, name)
    with pytest.raises((JournalFailedError, JournalUnavailableError), match=f"{name} is broken"):
        await log.log(b"b")
        await log.roll()
    assert places.calls[-1] == (step, name) and isinstance(log.failure, JournalUnavailableError)
    await log.abort()


@in_virtual_time
async def test_a_required_store_that_is_away_for_five_seconds_ends_no_writer() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        places = Places()
        places.patch(monkeypatch)
        log = await places.log()
        await log.log(b"a")
        for away in ("shared", "required"):
            for step in ("finalize", "start"):
                places.fail(step, away)
                waiting = asyncio.ensure_future(log.roll()) if step == "finalize" else log.log(away.encode())
                await asyncio.sleep(5)
                assert not waiting.done()
                places.broken.clear()
                await asyncio.sleep(2)
                await waiting
        assert log.failure is None and off(log) == []
        await log.close()
        for name in ALL:
            assert await places.edits(name) == [b"a", b"shared", b"required"]


async def test_too_few_redundant_members_are_fatal(places: Places) -> None:
    log = await places.log()
    await log.log(b"a")
    places.fail("append", "one")
    await log.log(b"b")
    places.fail("append", "two")
    with pytest.raises(JournalFailedError, match="0 redundant members"):
        await log.log(b"c")
    assert isinstance(log.failure, NotEnoughJournalsError)
    await log.abort()


@pytest.mark.rule("C5")
async def test_another_writer_of_the_set_fences_this_one(places: Places) -> None:
    log = await places.log()
    await log.log(b"a")
    other = await places.log()
    with pytest.raises(JournalFencedError):
        await log.log(b"lost")
    assert await other.log(b"b") == 2
    await log.abort()
    await other.close()
    for name in ALL:
        assert await places.edits(name) == [b"a", b"b"]


async def crashed_with(places: Places, *bodies: bytes, off: str | None = None) -> None:
    """A writer that ends without a word; ``off`` fails after the first edit."""
    log = await places.log()
    for body in bodies:
        await log.log(body)
        if off is not None:
            places.fail("append", off)
    places.broken.clear()
    await log.abort()


async def test_a_new_writer_brings_every_member_up_to_the_leading_one(places: Places) -> None:
    await crashed_with(places, b"a", b"b", b"c", off="one")
    log = await places.log()
    assert log.recovery.last_txid == 3 and off(log) == []
    assert await places.edits("one") == [b"a", b"b", b"c"]
    await log.log(b"d")
    await log.close()
    assert await places.edits("one") == [b"a", b"b", b"c", b"d"]


async def test_a_member_that_ends_within_a_batch_gets_the_rest_of_it(places: Places) -> None:
    log = await places.log()
    await log.log_group([(0, b"a"), (0, b"b"), (0, b"c")])
    await log.abort()
    del places.hub.places["one"]
    by_hand = await open_writer("mem:one", hub=places.hub)
    segment = await by_hand.start_segment(1, 1)
    await segment.append(encode_batch(1, [(0, b"a")]))
    await segment.close()
    await by_hand.close()
    log = await places.log()
    assert off(log) == [] and await places.edits("one") == [b"a", b"b", b"c"]
    await log.close()


async def test_a_member_that_joins_later_gets_the_batches_as_short_as_it_takes_them(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log asks once how long its batches may be, so a member that was off then was given longer ones, and was off
    again after each join."""
    real = memory.MemorySegmentWriter._append

    def append(segment: memory.MemorySegmentWriter, batch: Batch) -> None:
        if places.name_of(segment._place) == "two" and len(batch.frames) > 100:
            raise OpTooLargeError("too long for this member")
        real(segment, batch)

    def most(writer: memory.MemoryWriter) -> int:
        return 100 if places.name_of(writer._place) == "two" else 1000

    monkeypatch.setattr(memory.MemorySegmentWriter, "_append", append)
    monkeypatch.setattr(memory.MemoryWriter, "max_batch_bytes", property(most))
    words = [(0, bytes([n]) * 40) for n in range(4)]
    async with await EditLog.open("set:", members=places.members[::2] + places.members[3:]) as log:
        await log.log_group(words, request=RequestId(b"client", 1))
    places.fail("start", "two")
    async with await places.log() as log:
        assert off(log) == ["mem:two"]
        places.broken.clear()
        await log.log_group(words)
        assert off(log) == []
    assert await places.edits("two") == [body for _, body in words] * 2


async def test_a_member_with_other_edits_is_no_copy(places: Places) -> None:
    await crashed_with(places, b"a")
    stray = await open_writer("mem:one", hub=places.hub)
    segment = await stray.start_segment(2, 1)
    await segment.append(encode_batch(2, [(0, b"stray")]))
    await segment.close()
    await stray.close()
    log = await places.log()
    assert off(log) == ["mem:one"] and "is no copy" in (set_of(log).status()[2].problem or "")
    await log.log(b"b")
    assert await places.edits("two") == [b"a", b"b"]
    await log.close()


async def test_a_required_member_with_other_edits_is_an_error(places: Places) -> None:
    await crashed_with(places, b"a")
    stray = await open_writer("mem:required", hub=places.hub)
    segment = await stray.start_segment(2, 1)
    await segment.append(encode_batch(2, [(0, b"stray")]))
    await segment.close()
    await stray.close()
    with pytest.raises(JournalCorruptionError, match="is no copy"):
        await places.log()


async def test_a_member_that_lacks_removed_edits_stays_off_and_an_empty_one_begins_there(places: Places) -> None:
    await crashed_with(places, b"a")
    places.fail("start", "one")
    log = await places.log()
    for body in (b"b", b"c"):
        await log.log(body)
        await log.roll()
    await log.purge(3)
    assert await places.edits("two") == await places.edits("shared") == [b"c"]
    places.broken.clear()
    await log.log(b"d")
    assert off(log) == ["mem:one"] and "format mem:one" in (set_of(log).status()[2].problem or "")
    del places.hub.places["one"]
    await log.roll()
    await log.log(b"e")
    assert off(log) == [] and await places.edits("one") == [b"c", b"d", b"e"]
    await log.close()


@in_virtual_time
async def test_a_member_that_does_not_answer_holds_a_new_segment_up_for_a_bounded_time() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        places = Places()
        places.patch(monkeypatch)
        real = memory.MemoryBackend.open_writer

        async def open_writer(backend: memory.MemoryBackend, uri: Any, *args: Any, **options: Any) -> JournalWriter:
            if uri.name == "one":
                await asyncio.Event().wait()
            return await real(backend, uri, *args, **options)

        monkeypatch.setattr(memory.MemoryBackend, "open_writer", open_writer)
        async with asyncio.timeout(12):
            log = await places.log()
            assert off(log) == ["mem:one"]
            await log.log(b"a")
        await log.close()


async def test_damage_in_the_leading_member_is_read_from_a_copy(places: Places) -> None:
    log = await places.log()
    for n in range(4):
        await log.log(b"%d" % n, request=RequestId(b"c", n))
    await log.close()
    shared = places.hub.places["shared"]
    [batches] = shared.batches.values()
    batches[1:3] = []
    async with await open_reader("set:", members=places.members) as reader:
        ops = [op async for op in read_ops(reader, 1)]
    assert [op.body for op in ops] == [b"0", b"1", b"2", b"3"]
    assert [op.request for op in ops] == [RequestId(b"c", n) for n in range(4)]
    copies = [places.hub.places[name] for name in ALL[1:]]
    for copy in copies:
        [batches] = copy.batches.values()
        batches.clear()
    async with await open_reader("set:", members=places.members) as reader:
        with pytest.raises(JournalCorruptionError, match=r"edit [24] ") as caught:
            [op async for op in read_ops(reader, 1)]
    assert "no copy has edit 2 either" in caught.value.__notes__[0]


async def test_a_replica_can_be_kept_on_a_set(places: Places) -> None:
    machine = Ledger()
    async with replicated("set:", machine, name="a", members=places.members) as replica:
        await replica.wait_until_active()
        await replica.submit(b"x")
        await replica.checkpoint()
        await replica.submit(b"y")
    again = Ledger()
    async with replicated("set:", again, name="b", members=places.members) as replica:
        await replica.wait_until_active()
        assert again.words == [b"x", b"y"]
    for name in ("required", "one", "two"):
        assert (await places.edits(name))[-1] == b"y"


async def test_edits_sent_ahead_reach_every_member_in_order(places: Places) -> None:
    log = await places.log(transmit_bytes=10)
    await asyncio.gather(*(log.log(b"%d" % n) for n in range(50)))
    await log.close()
    for name in ALL:
        assert await places.edits(name) == [b"%d" % n for n in range(50)]


async def test_a_member_with_other_edits_under_the_same_ids_is_no_copy() -> None:
    """As after edits were discarded in the leading member alone, and their ids used again."""
    places = Places()
    async with await EditLog.open("mem:one", hub=places.hub) as alone:
        await alone.log_group([(0, b"1"), (0, b"other")])
    async with await EditLog.open("mem:shared", hub=places.hub) as shared:
        await shared.log_group([(0, b"1"), (0, b"2"), (0, b"3")])
    async with await EditLog.open("mem:two", hub=places.hub) as copy:
        await copy.log(b"1")
    writer = await open_writer("set:", members=places.members)
    assert isinstance(writer, SetWriter)
    states = {status.uri: status for status in writer.status()}
    assert states["mem:one"].state is MemberState.OFF
    assert "edit 2 in mem:one is another" in str(states["mem:one"].problem)
    assert states["mem:two"].state is MemberState.ACTIVE
    await writer.close()
    assert await places.edits("two") == [b"1", b"2", b"3"]
    assert await places.edits("one") == [b"1", b"other"]


async def test_a_set_discards_no_edits_and_makes_no_upgrade() -> None:
    """An operator does that on each member: a member that is off would keep what the others discard."""
    places = Places()
    writer = await open_writer("set:", members=places.members)
    for kind in (Discard, Upgrade, OrphanSweep):
        with pytest.raises(UnsupportedCapabilityError, match=f"SetWriter cannot do this: it has no {kind.__name__}"):
            capability(writer, kind)
    await writer.close()


async def test_edits_discarded_on_each_member_are_gone_from_the_set() -> None:
    places = Places()
    async with await places.log() as log:
        await log.log(b"1")
        await log.roll()
        await log.log(b"2")
    for member in places.members:
        writer = await open_writer(member.uri, hub=places.hub)
        await capability(writer, Discard).discard_from(2)  # type: ignore[type-abstract]
        await writer.close()
    async with await places.log() as log:
        assert await log.log(b"another") == 2
    for name in ("one", "two", "required", "shared"):
        assert await places.edits(name) == [b"1", b"another"]


async def discarded_but_in(places: Places, off: str, others: list[bytes]) -> None:
    """Edits 1 to 4; those from 2 on are discarded on every member but one, which is off, and others are logged."""
    async with await places.log() as log:
        await log.log(b"1")
        await log.roll()
        for word in (b"old 2", b"old 3", b"4"):
            await log.log(word)
    for member in places.members:
        if member.uri != f"mem:{off}":
            writer = await open_writer(member.uri, hub=places.hub)
            await capability(writer, Discard).discard_from(2)  # type: ignore[type-abstract]
            await writer.close()
    rest = [member for member in places.members if member.uri != f"mem:{off}"]
    async with await EditLog.open("set:", members=rest) as log:
        await log.log_group([(0, word) for word in others])


@pytest.mark.rule("J10")
async def test_what_was_discarded_is_not_read_from_a_member_that_still_has_it(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer refused such a member; a reader asked it for ids alone, and returned edits that were discarded. And
    the writer compared the last edits only, which may well be equal."""
    monkeypatch.setattr(set_copies, "COMPARED", 1)
    await discarded_but_in(places, "one", [b"new 2", b"new 3", b"4"])
    new = [b"1", b"new 2", b"new 3", b"4"]

    async def read() -> list[bytes]:
        async with await open_reader("set:", members=places.members) as reader:
            return [op.body async for op in read_ops(reader, 1)]

    for name in ("shared", "required"):
        places.hub.places[name].batches[places.hub.places[name].chain.segments[1].location].clear()
        assert await read() == new, "member two has them"
    two = places.hub.places["two"]
    kept = two.batches[two.chain.segments[1].location]
    whole, kept[:] = list(kept), []
    with pytest.raises(JournalCorruptionError):
        await read()
    kept[:] = whole
    for name in ("shared", "required"):
        places.hub.places[name].batches[places.hub.places[name].chain.segments[1].location][:] = whole

    writer = await open_writer("set:", members=places.members)
    assert isinstance(writer, SetWriter)
    states = {status.uri: status for status in writer.status()}
    assert "those from 2 on were discarded from the leading member" in str(states["mem:one"].problem)
    assert states["mem:two"].state is MemberState.ACTIVE
    await writer.close()


@pytest.mark.rule("J10")
async def test_a_member_of_which_the_same_was_discarded_is_written_and_read_again(places: Places) -> None:
    """Also through what a program has put around a member's writer, and after the leading one discarded more."""
    wrapped = JournalStats(Metrics(), "one")
    places.members[0] = replace(places.members[0], wrap=wrapped.measured)
    await discarded_but_in(places, "one", [b"new 2"])
    writer = await open_writer("mem:one", hub=places.hub)
    await capability(writer, Discard).discard_from(2)  # type: ignore[type-abstract]
    await writer.close()
    async with await places.log() as log:
        await log.log(b"new 3")
        assert await log.discarded()
    assert await places.edits("one") == [b"1", b"new 2", b"new 3"]
    shared = places.hub.places["shared"]
    assert places.hub.places["one"].chain.copy == CopySource(
        shared.chain.discarded.journal, shared.chain.discarded.epoch + 1
    )
    for name in ("shared", "required", "two"):
        for segment in places.hub.places[name].chain.segments[1:]:
            places.hub.places[name].batches[segment.location].clear()
    async with await open_reader("set:", members=places.members) as reader:
        assert [op.body async for op in read_ops(reader, 1)] == [b"1", b"new 2", b"new 3"]

    writer = await open_writer("mem:shared", hub=places.hub)
    await capability(writer, Discard).discard_from(3)  # type: ignore[type-abstract]
    await writer.close()
    async with await open_reader("set:", members=places.members) as reader:
        assert [op.body async for op in read_ops(reader, 2)] == [b"new 2"], "and no edit 3, which the members have"


@pytest.mark.rule("J10")
async def test_a_member_with_other_edits_is_not_read_although_nobody_noted_that_some_were_discarded(
    places: Places,
) -> None:
    """A leading member of an earlier version notes nothing; the reader did not compare at all."""
    async with await EditLog.open("mem:one", hub=places.hub) as alone:
        await alone.log_group([(0, b"1"), (0, b"other"), (0, b"3")])
    async with await EditLog.open("mem:shared", hub=places.hub) as shared:
        await shared.log_group([(0, b"1"), (0, b"2")])
        await shared.roll()
        await shared.log(b"3")
    members = [places.members[0], places.members[3]]
    place = places.hub.places["shared"]
    place.batches[place.chain.segments[1].location].clear()
    async with await open_reader("set:", members=members) as reader:
        with pytest.raises(JournalCorruptionError):
            [op async for op in read_ops(reader, 1)]
