"""Idempotent producers: verdicts, original positions, epochs, outcomes, over take-overs and lost snapshots."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.errors import AddTimeoutError
from bookkeeper.outcome import Outcome
from segments.arguments import SEQUENCE_MAX
from segments.config import ProducerPolicy, StreamConfig
from segments.entries.layout import EntryKind
from segments.entries.stored_entry import decode_entry
from segments.errors import (
    AppendOutcomeUnknownError,
    OwnershipLostError,
    ProducerFencedError,
    SequenceGapError,
    SequenceTooOldError,
    StreamConfigError,
    StreamNameError,
)
from segments.position import Position
from segments.write.producer import EPOCH_MAX, Producer
from tests.segments.fake import AT_ONCE, Cluster, chain_of, check_stream, records_of, stream_on, values_of
from tests.spark_wal.webhdfs.virtual import in_virtual_time


@in_virtual_time
async def test_a_record_that_is_sent_again_is_answered_with_where_it_stands() -> None:
    """SEG-115 SEG-116"""
    cluster = Cluster()
    stream = await stream_on(cluster)
    async with stream.producer("p") as producer:
        assert (producer.epoch, producer.last_seq, producer.next_seq) == (1, None, 0)
        first = await producer.append(b"0")
        second = await producer.append(b"1")
        assert producer.last_seq == 1
        again = await producer.append(b"0", seq=0)
        assert (again.position, again.duplicate, first.duplicate) == (first.position, True, False)
        assert (first.seq_no, second.seq_no, again.seq_no) == (0, 1, None)
        assert (await producer.append(b"1", seq=1)).position == second.position
        batch = await producer.append_batch([b"2", b"3", b"4"])
        repeated = await producer.append_batch([b"2", b"3", b"4"], seq=2)
        assert (repeated.position, repeated.last) == (batch.position, batch.last)
        part = await producer.append(b"3", seq=3)
        assert part.position == Position(batch.position.segment, batch.position.entry, batch.position.slot + 1)
    assert await values_of(cluster, stream) == [b"0", b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize("first", [-1, SEQUENCE_MAX, SEQUENCE_MAX + 1])
@in_virtual_time
async def test_numbers_that_no_later_writer_could_note_are_refused(first: int) -> None:
    cluster = Cluster()
    stream = await stream_on(cluster)
    async with stream.producer("p", gap="monotonic") as producer:
        with pytest.raises(StreamConfigError, match="numbers its records from 0 to"):
            await producer.append_batch([b"a", b"b"], seq=first)
        await producer.append(b"last", seq=SEQUENCE_MAX)
    for _ in range(2):
        async with stream.producer("p") as producer:
            assert producer.last_seq == SEQUENCE_MAX
            with pytest.raises(StreamConfigError):
                await producer.append(b"next")
        async with stream.writer() as writer:
            await writer.append(b"others go on")


@in_virtual_time
async def test_epochs_leave_room_for_later_ones() -> None:
    stream = await stream_on(Cluster())
    for epoch in (-1, EPOCH_MAX + 1):
        with pytest.raises(StreamConfigError, match="epoch of producer p can be"):
            await stream.producer("p", epoch=epoch)
    async with stream.producer("p", epoch=EPOCH_MAX):
        pass
    async with stream.producer("p") as producer:
        assert producer.epoch == EPOCH_MAX + 1


@pytest.mark.parametrize("before", [0, 3])
@pytest.mark.parametrize("crash", [False, True])
@in_virtual_time
async def test_an_epoch_without_a_record_outlives_its_writer(crash: bool, before: int) -> None:
    """SEG-117: what was opened fences its former holder also when every writer since ended without a record."""
    cluster = Cluster()
    stream = await stream_on(cluster)
    for number in range(before):
        async with stream.producer("other") as producer:
            await producer.append(b"%d" % number)
    for epoch in (1, 2, 3):
        writer = await stream.writer()
        producer = await Producer.open(writer, "p")
        assert (producer.epoch, producer.last_seq) == (epoch, None)
        await (writer.abort() if crash else writer.close())
        for _ in range(2):  # writers that do nothing at all
            await (await stream.writer()).close()
    async with stream.writer() as writer:
        with pytest.raises(ProducerFencedError):
            await Producer.open(writer, "p", epoch=2)
    async with stream.producer("p") as producer:
        assert (producer.epoch, (await producer.append(b"mine")).duplicate) == (4, False)
    assert await values_of(cluster, stream) == [*(b"%d" % number for number in range(before)), b"mine"]
    await check_stream(cluster, stream)


@in_virtual_time
async def test_what_was_truncated_is_too_old_to_tell_for_the_next_writer() -> None:
    """A duplicate is not answered with a position at which nobody can read."""
    stream = await stream_on(Cluster())
    async with stream.producer("p") as producer:
        await producer.append(b"0")
    async with stream.producer("p") as producer:
        kept = await producer.append(b"1")
    await stream.truncate(kept.position)
    async with stream.producer("p") as producer:
        with pytest.raises(SequenceTooOldError):
            await producer.append(b"0", seq=0)
        again = await producer.append(b"1", seq=1)
        assert (again.position, again.duplicate) == (kept.position, True)


@in_virtual_time
async def test_a_record_that_is_under_way_is_waited_for_and_not_sent_again() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster)
    async with stream.producer("p") as producer:
        futures = [producer.append_nowait(b"0"), *(producer.append_nowait(b"0", seq=0) for _ in range(3))]
        first, *others = await asyncio.gather(*futures)
        assert {result.position for result in others} == {first.position}
        assert [result.duplicate for result in others] == [True] * 3
        assert [result.seq_no for result in others] == [0] * 3
        batch = producer.append_batch_nowait([b"1", b"2", b"3"])
        inner = await producer.append(b"2", seq=2)
        assert inner.position.slot == (await batch).position.slot + 1
        gone = producer.append_nowait(b"4")
        waiting = producer.append_nowait(b"4", seq=4)
        gone.cancel()
        assert (await waiting).duplicate
    assert await values_of(cluster, stream) == [b"0", b"1", b"2", b"3", b"4"]


@in_virtual_time
async def test_a_strict_producer_may_leave_nothing_out_and_a_monotonic_one_may() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster)
    async with stream.producer("strict") as producer:
        await producer.append(b"0")
        with pytest.raises(SequenceGapError, match="record 1 comes next") as gap:
            await producer.append(b"5", seq=5)
        assert gap.value.expected == 1
        with pytest.raises(SequenceGapError):
            await producer.append_batch([b"0", b"1"], seq=0)  # half of it is there
        await producer.append(b"1", seq=1)
    async with stream.producer("monotonic", gap="monotonic") as producer:
        await producer.append(b"10", seq=10)
        await producer.append(b"20", seq=20)
        assert (await producer.append(b"10", seq=10)).duplicate
    assert await values_of(cluster, stream) == [b"0", b"1", b"10", b"20"]


@in_virtual_time
async def test_opening_a_producer_again_fences_the_former_holder_also_over_a_take_over() -> None:
    """SEG-117"""
    cluster = Cluster()
    stream = await stream_on(cluster)
    async with stream.writer() as writer:
        old = await Producer.open(writer, "p")
        await old.append(b"0")
        new = await Producer.open(writer, "p")
        assert (new.epoch, new.next_seq) == (2, 1)
        with pytest.raises(ProducerFencedError) as fenced:
            await old.append(b"zombie")
        assert fenced.value.epoch == 2
        with pytest.raises(ProducerFencedError):
            await Producer.open(writer, "p", epoch=1)
        await (await Producer.open(writer, "q")).append(b"q")
    abandoned = await stream.writer()
    third = await Producer.open(abandoned, "p")
    assert third.epoch == 3
    async with (await stream_on(cluster.sibling())).writer() as writer:
        with pytest.raises(ProducerFencedError):
            await Producer.open(writer, "p", epoch=2)
        assert (await Producer.open(writer, "p")).epoch == 4, "epoch 3 appended nothing, and is known all the same"


@pytest.mark.parametrize("snapshots", [False, True])
@in_virtual_time
async def test_duplicates_are_known_after_the_owner_has_died(snapshots: bool) -> None:
    """SEG-116 SEG-118: the original positions survive a fail-over, with and without a snapshot."""
    cluster = Cluster()
    every = 200 if snapshots else 1 << 30
    config = StreamConfig(producers=ProducerPolicy(snapshot_every_bytes=every), roll=AT_ONCE.roll)
    stream = await stream_on(cluster, config=config)
    writer = await stream.writer()
    producers = [await Producer.open(writer, f"p{number}") for number in range(3)]
    originals = {}
    for sequence in range(20):
        for producer in producers:
            originals[producer.name, sequence] = (await producer.append(b"%d" % sequence)).position
    kinds = [decode_entry(payload).kind for ledger in cluster.ledgers.values() for payload in ledger.entries]
    assert (EntryKind.SNAPSHOT in kinds) is snapshots
    read: list[int] = []
    other = cluster.sibling()
    other.step = lambda name: read.append(1) if name == "read" else None  # type: ignore[method-assign]
    stream = await stream_on(other)
    async with stream.writer() as writer:
        assert (len(read) < 15) is snapshots, "with snapshots only the end of the segment is read"
        for name in ("p0", "p1", "p2"):
            producer = await Producer.open(writer, name)
            assert producer.next_seq == 20
            for sequence in range(20):
                again = await producer.append(b"%d" % sequence, seq=sequence)
                assert (again.position, again.duplicate) == (originals[name, sequence], True)
            assert not (await producer.append(b"20")).duplicate
    assert len(await values_of(cluster, stream)) == 63
    await check_stream(cluster, stream)


@in_virtual_time
async def test_the_outcome_of_an_unclear_append_can_be_asked_for() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster)
    producer = await stream.producer("p")
    known = await producer.append(b"0")
    cluster.delay_s = 5.0
    with pytest.raises(AppendOutcomeUnknownError):
        await producer.append(b"1", timeout=0.5)
    outcome, result = await producer.outcome(1)  # waits for it
    assert outcome is Outcome.APPLIED
    assert result is not None
    assert result.duplicate
    assert await producer.outcome(2) == (Outcome.REJECTED, None)
    other = await stream_on(cluster.sibling())
    async with other.producer("p") as successor:
        outcome, result = await successor.outcome(0)
        assert (outcome, result and result.position) == (Outcome.APPLIED, known.position)
        with pytest.raises(ProducerFencedError):
            await Producer(successor.writer, "p", 1, 0, strict=True).outcome(0)
    await asyncio.gather(producer.close(), return_exceptions=True)


@pytest.mark.rule("C4")
@pytest.mark.parametrize("opening", ["beside", "with a timeout"])
@in_virtual_time
async def test_an_opening_tells_of_what_was_under_way_before_it(opening: str) -> None:
    """What an opening told was read before its fence was durable: an append of the former holder that was under way
    came in between, the next number was one too low, and the next record was answered as its duplicate, and lost."""
    cluster = Cluster()
    stream = await stream_on(cluster)
    async with stream.writer() as writer:
        former = await Producer.open(writer, "p")
        await former.append(b"0")
        cluster.delay_s = 5.0
        if opening == "beside":
            late = asyncio.ensure_future(former.append(b"1"))
            await asyncio.sleep(0)
        else:
            with pytest.raises(AppendOutcomeUnknownError):
                await former.append(b"1", timeout=0.5)
        successor = await Producer.open(writer, "p")
        assert (successor.epoch, successor.last_seq, successor.next_seq) == (2, 1, 2)
        if opening == "beside":
            assert not (await late).duplicate
        assert not (await successor.append(b"2")).duplicate
    assert await values_of(cluster, stream) == [b"0", b"1", b"2"]


@in_virtual_time
async def test_an_opening_that_was_overtaken_is_told() -> None:
    """It would begin with numbers that are another one's by now."""
    stream = await stream_on(Cluster())
    async with stream.writer() as writer:
        first, second = await asyncio.gather(
            Producer.open(writer, "p"), Producer.open(writer, "p"), return_exceptions=True
        )
        assert isinstance(first, ProducerFencedError) and first.epoch == 2
        assert isinstance(second, Producer) and second.epoch == 2


FORGETFUL = StreamConfig(producers=ProducerPolicy(max_producers=1), roll=AT_ONCE.roll)


@pytest.mark.rule("C4")
@pytest.mark.parametrize("end", ["stays", "closes", "dies"])
@in_virtual_time
async def test_a_forgotten_producer_is_in_doubt_however_often_it_is_opened(end: str) -> None:
    """The doubt was with the opening and not with the producer: the second opening, here or at a new owner, said that
    nothing was forgotten, a record that is there was said to be refused, and what was sent again was there twice."""
    cluster = Cluster()
    stream = await stream_on(cluster, config=FORGETFUL)
    writer = await stream.writer()
    for name in ("p", "q"):
        producer = await Producer.open(writer, name)
        await producer.append_batch([b"%s0" % name.encode(), b"%s1" % name.encode()])
    for _ in range(2):
        producer = await Producer.open(writer, "p")
        assert producer.maybe_forgotten
        assert await producer.outcome(1) == (Outcome.UNKNOWN, None)
        if end != "stays":
            await (writer.close() if end == "closes" else writer.abort())
            stream = await stream_on(cluster.sibling())
            writer = await stream.writer()
    producer = await Producer.open(writer, "p")
    assert writer.state.producers.is_doubtful("p") and producer.epoch > 2
    await producer.append(b"p2", seq=2)  # its program knows
    assert not producer.maybe_forgotten
    with pytest.raises(SequenceTooOldError, match=r"does not remember whether it has record 1 .* last one is record 2"):
        await producer.append(b"p1", seq=1)
    assert await producer.outcome(3) == (Outcome.REJECTED, None)
    await writer.close()
    assert await values_of(cluster, stream) == [b"p0", b"p1", b"q0", b"q1", b"p2"]


@in_virtual_time
async def test_the_holder_of_a_forgotten_name_is_fenced_by_the_next_opening() -> None:
    """The forgotten name began with epoch 1 again: its former holder, with a higher one, appended, and fenced the new
    one."""
    stream = await stream_on(Cluster(), config=FORGETFUL)
    async with stream.writer() as writer:
        for _ in range(3):
            former = await Producer.open(writer, "p")
        await former.append(b"0")
        await (await Producer.open(writer, "q")).append(b"q")
        with pytest.raises(SequenceTooOldError, match="forgotten producers, and this may be one of them: open"):
            await former.append(b"1")
        successor = await Producer.open(writer, "p")
        with pytest.raises(ProducerFencedError):
            await former.append(b"1")
        await successor.append(b"1", seq=1)


@in_virtual_time
async def test_an_owner_that_was_overtaken_does_not_say_that_a_record_was_refused() -> None:
    """It answered from what it knew, which nothing had frozen: the new owner had the record."""
    cluster = Cluster()
    stream = await stream_on(cluster)
    former = await stream.writer()
    producer = await Producer.open(former, "p")
    former._watch.close()  # type: ignore[union-attr]  # it is not told
    other = await stream_on(cluster.sibling())
    async with other.producer("p") as successor:
        await successor.append(b"0")
        with pytest.raises(OwnershipLostError):
            await producer.outcome(0)
    await former.abort()


@in_virtual_time
async def test_the_last_record_of_a_producer_is_known_when_all_records_are_gone() -> None:
    """It was said that nobody remembers whether it is there; the number is that of the producer's last record."""
    stream = await stream_on(Cluster())
    async with stream.producer("p") as producer:
        await producer.append_batch([b"0", b"1", b"2"])
    await stream.truncate(Position.LATEST)
    await stream.apply_retention()
    async with stream.producer("p") as producer:
        assert (producer.last_seq, producer.next_seq) == (2, 3)
        with pytest.raises(
            SequenceTooOldError, match=r"record 2 .* was appended .* position is not known any more"
        ) as there:
            await producer.append(b"2", seq=2)
        assert there.value.outcome is Outcome.APPLIED
        assert await producer.outcome(2) == (Outcome.APPLIED, None)
        with pytest.raises(SequenceTooOldError, match=r"whether it has record 1 .* its last one is record 2") as old:
            await producer.append(b"1", seq=1)
        assert old.value.outcome is Outcome.UNKNOWN
        for first, count in ((1, 3), (2, 2)):
            with pytest.raises(SequenceGapError, match=rf"records {first} to 3 together: they overlap") as overlap:
                await producer.append_batch([b"x"] * count, seq=first)
            assert overlap.value.expected == 3
        assert not (await producer.append(b"3")).duplicate


@in_virtual_time
async def test_a_repeated_batch_of_another_length_is_said_to_overlap() -> None:
    """It was said to be too old, although some of its records are remembered."""
    cluster = Cluster()
    config = StreamConfig(producers=ProducerPolicy(positions_each=2), roll=AT_ONCE.roll)
    stream = await stream_on(cluster, config=config)
    async with stream.producer("p") as producer:
        for number in range(6):
            await producer.append(b"%d" % number)
        with pytest.raises(SequenceGapError, match=r"records 2 to 4 together: they overlap .* record 6 comes next"):
            await producer.append_batch([b"2", b"3", b"4"], seq=2)
    assert len(await values_of(cluster, stream)) == 6


@in_virtual_time
async def test_what_is_too_old_is_said_to_be_too_old_and_never_guessed() -> None:
    cluster = Cluster()
    config = StreamConfig(producers=ProducerPolicy(positions_each=2), roll=AT_ONCE.roll)
    stream = await stream_on(cluster, config=config)
    async with stream.producer("p") as producer:
        for number in range(10):
            await producer.append(b"%d" % number)
        assert (await producer.append(b"9", seq=9)).duplicate
        with pytest.raises(SequenceTooOldError):
            await producer.append(b"0", seq=0)
        assert await producer.outcome(0) == (Outcome.UNKNOWN, None)
    assert len(await values_of(cluster, stream)) == 10


@in_virtual_time
async def test_a_failed_add_keeps_the_numbers_of_producers_and_their_order() -> None:
    cluster = Cluster()
    cluster.kept_after_failure = 2
    seen = 0

    def sometimes(writer: object, payload: bytes) -> AddTimeoutError | None:
        nonlocal seen
        seen += 1
        return AddTimeoutError("gone") if seen % 7 == 0 else None

    cluster.breaks = sometimes
    stream = await stream_on(cluster)
    async with stream.producer("a") as one, stream.producer("b") as two:
        assert one.writer is two.writer
        futures = []
        for number in range(40):
            futures += [one.append_nowait(b"a%d" % number), two.append_nowait(b"b%d" % number)]
            await asyncio.sleep(0.0005)
        results = await asyncio.gather(*futures)
        assert not any(result.duplicate for result in results)
        for number in range(40):
            again = await one.append(b"a%d" % number, seq=number)
            assert again.position == results[2 * number].position
    values = await values_of(cluster, stream)
    assert [value for value in values if value[:1] == b"a"] == [b"a%d" % number for number in range(40)]
    assert [value for value in values if value[:1] == b"b"] == [b"b%d" % number for number in range(40)]
    refs = [ref for entry in await records_of(cluster, stream) for ref in entry.producers() if ref is not None]
    assert [ref.sequence for ref in refs if ref.name == "b"] == list(range(40))
    await check_stream(cluster, stream)


@in_virtual_time
async def test_producers_of_a_stream_share_a_writer_that_is_closed_with_the_last() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster)
    one = await stream.producer("a")
    two = await stream.producer("b")
    await one.append(b"1")
    await one.close()
    await one.close()
    await two.append(b"2")
    assert (await chain_of(stream)).epoch == 1
    await two.close()
    assert (await chain_of(stream)).open_segment is None
    with pytest.raises(StreamNameError):
        await stream.producer("no name")
    async with stream.producer("a") as three:
        assert (three.epoch, three.next_seq) == (2, 1)
    assert (await chain_of(stream)).owner == ""
