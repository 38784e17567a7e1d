"""What a new owner finds: it reads only the end, joins pieces, and never guesses."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from bookkeeper.errors import BookieUnavailableError
from segments.chain import encode_chain
from segments.chain.stream_chain import SEGMENTS_MAX
from segments.config import ProducerPolicy, StreamConfig
from segments.errors import EntryCorruptError, OwnershipLostError, StreamCorruptError, StreamUnavailableError
from segments.position import Position
from segments.record import Record
from segments.stream import Stream
from segments.write.producer import Producer
from segments.write.state.stream_owner import StreamOwner
from segments.write.take_over import find_end
from tests.segments.chain.pages import RECORDS, make_pages_small, many
from tests.segments.fake import AT_ONCE, Cluster, chain_of, check_stream, stream_on, values_of
from tests.spark_wal.webhdfs.virtual import in_virtual_time


@in_virtual_time
async def test_a_new_owner_goes_on_where_the_former_one_stopped() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster)
    former = await stream.writer()
    for number in range(5):
        await former.append(Record(b"%d" % number, txid=10 + number))
    other = await stream_on(cluster.sibling())
    async with other.writer() as writer:
        assert (writer.epoch, writer.next_seq_no, writer.last_txid) == (2, 5, 14)
        assert writer.tail == Position(1, 4, 0)
        assert (await writer.append(b"5")).position == Position(2, 0, 0)
    first, second = (await chain_of(stream)).segments
    assert (first.records, first.contents.footer_entry, second.start_seq_no) == (5, None, 5)
    await check_stream(cluster, stream)


@in_virtual_time
async def test_only_the_end_of_a_long_segment_is_read() -> None:
    cluster = Cluster()
    config = StreamConfig(producers=ProducerPolicy(snapshot_every_bytes=20_000), roll=AT_ONCE.roll)
    stream = await stream_on(cluster, config=config)
    former = await stream.writer()
    producer = await Producer.open(former, "p")
    for number in range(300):
        await producer.append(b"%04d" % number + bytes(500))
    other = cluster.sibling()
    reads = 0

    def count(name: str) -> None:
        nonlocal reads
        reads += name == "read"

    other.step = count  # type: ignore[method-assign]
    async with (await stream_on(other)).writer() as writer:
        assert reads < 60
        assert (await Producer.open(writer, "p")).next_seq == 300
    await check_stream(cluster, stream)


@in_virtual_time
async def test_pieces_without_an_end_hold_no_record() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster)
    former = await stream.writer()
    await former.append(b"0")
    await former.append(bytes(3_000_000))
    ledger = cluster.ledgers[(await chain_of(stream)).segments[0].ledger_id]
    del ledger.entries[-1]  # the owner died before the last piece was durable
    async with (await stream_on(cluster.sibling())).writer() as writer:
        assert writer.next_seq_no == 1
        assert (await writer.append(b"1")).seq_no == 1
    assert await values_of(cluster, stream) == [b"0", b"1"]
    await check_stream(cluster, stream)


@in_virtual_time
async def test_pieces_before_what_a_snapshot_covers_are_read_with_the_last_one() -> None:
    cluster = Cluster()
    config = StreamConfig(producers=ProducerPolicy(snapshot_every_bytes=1_500_000), roll=AT_ONCE.roll)
    stream = await stream_on(cluster, config=config)
    former = await stream.writer()
    producer = await Producer.open(former, "p")
    large = bytes(4_000_000)
    originals = [(await producer.append(large)).position for _ in range(3)]
    async with (await stream_on(cluster.sibling())).writer() as writer:
        successor = await Producer.open(writer, "p")
        assert [(await successor.append(large, seq=number)).position for number in range(3)] == originals
    await check_stream(cluster, stream)


@in_virtual_time
async def test_a_segment_without_records_is_dropped_and_the_one_before_is_asked_for_producers() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster)
    async with stream.producer("p") as producer:
        original = await producer.append(b"0")
    for _ in range(3):
        await (await stream_on(cluster.sibling())).writer()  # dies at once
    other = await stream_on(cluster.sibling())
    async with other.producer("p") as producer:
        assert (await producer.append(b"0", seq=0)).position == original.position
        await producer.append(b"1")
    assert await values_of(cluster, stream) == [b"0", b"1"]
    await check_stream(cluster, stream)
    assert set(cluster.ledgers) == set((await chain_of(stream)).ledgers)


@in_virtual_time
async def test_after_everything_was_truncated_nobody_guesses_about_producers() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster)
    async with stream.producer("p") as producer:
        await producer.append(b"0")
    record = stream.node
    chain, version = await record.read()
    chain = chain.truncate(Position(2, 0, 0)).remove(1)
    await record.write(chain, version)
    async with stream.producer("p") as producer:
        assert producer.maybe_forgotten
        assert producer.next_seq == 0
        assert not (await producer.append(b"7", seq=7)).duplicate, "its first number is its own"
    assert (await chain_of(stream)).records == 2


@in_virtual_time
async def test_a_take_over_that_fails_changes_nothing_and_the_next_one_succeeds() -> None:
    """SEG-40"""
    cluster = Cluster()
    stream = await stream_on(cluster)
    former = await stream.writer()
    await former.append(b"0")
    for step in ("open_ledger", "create_ledger", "read"):
        failing = cluster.sibling()

        def refuse(name: str, step: str = step) -> None:
            if name == step:
                raise BookieUnavailableError("away")

        failing.step = refuse  # type: ignore[method-assign]
        with pytest.raises(StreamUnavailableError):
            await (await stream_on(failing)).writer()
    async with (await stream_on(cluster.sibling())).writer() as writer:
        assert writer.next_seq_no == 1
    await check_stream(cluster, stream)
    assert set(cluster.ledgers) == set((await chain_of(stream)).ledgers)


@in_virtual_time
async def test_a_claimant_that_was_overtaken_says_so_when_the_open_segment_has_gone() -> None:
    """Whoever came later has dropped the segment, which had no record, and deleted its ledger: nothing is damaged."""
    cluster = Cluster()
    stream = await stream_on(cluster)
    await stream.writer()  # dies at once
    slow = await stream_on(cluster.sibling())
    owner = await StreamOwner.claim(slow.node, "slow", "a nonce")
    async with (await stream_on(cluster.sibling())).writer() as later:
        await later.append(b"0")
        await asyncio.sleep(1)
        assert owner.chain.open_segment is not None and owner.chain.open_segment.ledger_id not in cluster.ledgers
        with pytest.raises(OwnershipLostError):
            await find_end(slow.client, owner, ProducerPolicy())
    await check_stream(cluster, stream)


@in_virtual_time
async def test_what_is_no_entry_of_a_stream_is_refused_with_its_place() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster)
    former = await stream.writer()
    await former.append(b"0")
    ledger = (await chain_of(stream)).segments[0].ledger_id
    cluster.ledgers[ledger].entries.append(b"foreign")
    with pytest.raises(EntryCorruptError) as refused:
        await (await stream_on(cluster.sibling())).writer()
    assert refused.value.position == Position(1, 1, 0)
    del cluster.ledgers[ledger]
    with pytest.raises(StreamCorruptError, match="does not exist any more"):
        await (await stream_on(cluster.sibling())).writer()


# -- streams of very many segments -----------------------------------------------------------------------


async def with_so_many_before(cluster: Cluster, stream: Stream, count: int, *, by_itself: bool = False) -> int:
    """Put ``count`` segments before the one that the stream has, as if it had been written for years. Their ledgers do
    not exist. With ``by_itself`` the record lists all of them, as an earlier version left it. Returns the number of the
    stream's own segment."""
    chain, version = await stream.node.read()
    (own,) = chain.recent
    before = many(count)
    own = replace(own, number=count + 1, start_seq_no=RECORDS * count)
    total = RECORDS * count + own.records
    chain = replace(chain, recent=(*before, own), next_number=count + 2, records=total, start=Position(count + 1, 0, 0))
    if not by_itself:
        chain = await stream.node.pages.write_folded(chain)
    await stream.node.write(chain, version)
    return count + 1


@pytest.mark.parametrize("count", [20, 100_000])
@in_virtual_time
async def test_a_take_over_reads_one_small_value_however_many_segments_there_are(count: int) -> None:
    cluster = Cluster()
    stream = await stream_on(cluster)
    async with stream.writer() as writer:
        await writer.append(b"first")
    number = await with_so_many_before(cluster, stream, count)
    other = await stream_on(cluster.sibling())
    store = other.node.recent.store
    read: list[tuple[str, int]] = []
    get = store.get

    async def seen(path: str) -> Any:
        found = await get(path)
        read.append((path, len(found.value)))
        return found

    store.get = seen  # type: ignore[method-assign]
    writer = await other.writer()
    store.get = get  # type: ignore[method-assign]
    assert len(read) < 12 and not [path for path, _ in read if "/pages/" in path]
    assert max(size for _, size in read) < 250_000
    assert (await writer.append(b"second")).position == Position(number + 1, 0, 0)
    assert (await writer.roll()).number == number + 1
    await other.truncate(Position(number + 1, 0, 0))
    await writer.append(b"third")
    await writer.close()
    assert await other.seal() == Position(number + 2, 0, 0)
    assert len(await other.segments()) == count + 3 and (await other.chain()).sealed


@in_virtual_time
async def test_a_record_that_an_earlier_version_filled_is_taken_over_and_gets_pages() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster)
    async with stream.writer() as writer:
        await writer.append(b"first")
    number = await with_so_many_before(cluster, stream, SEGMENTS_MAX - 1, by_itself=True)
    before, _ = await stream.node.read()
    assert before.pages == () and len(before.recent) == SEGMENTS_MAX
    async with (await stream_on(cluster.sibling())).writer() as writer:
        assert (await writer.append(b"second")).position == Position(number + 1, 0, 0)
    after, _ = await stream.node.read()
    assert tuple(after.segments)[:-1] == before.segments and len(after.pages) == 7
    assert len(encode_chain(after)) < 250_000


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    make_pages_small(monkeypatch)


@in_virtual_time
async def test_a_writer_moves_old_segments_to_pages_while_it_rolls(small_pages: None) -> None:
    cluster = Cluster()
    stream = await stream_on(cluster)
    values = []
    for life in range(4):
        async with stream.writer() as writer:
            for number in range(5):
                values.append(b"%d" % (5 * life + number))
                await writer.append(values[-1])
                await writer.roll()
    chain, _ = await stream.node.read()
    assert len(chain.recent) <= 4 and [segment.number for segment in chain.segments] == sorted(
        {segment.number for segment in chain.segments}
    )
    assert chain.count == 20 and chain.listed_records == 20
    assert await values_of(cluster, stream) == values
    await stream.truncate(Position(chain.segments[15].number, 0, 0))
    await stream.apply_retention()
    after, _ = await stream.node.read()
    assert tuple(after.segments) == tuple(chain.segments)[15:]
    there = await stream.node.store.children(stream.node.path.replace("/chain", "/pages"))
    assert sorted(there) == [page.key for page in after.pages]
    await check_stream(cluster, stream)


@in_virtual_time
async def test_death_while_segments_move_to_a_page_leaves_a_stream_that_opens(small_pages: None) -> None:
    deaths = 0
    for at in range(0, 400, 3):
        cluster = Cluster(at)
        told: list[int] = []

        async def life(cluster: Cluster, upto: int, told: list[int] = told) -> None:
            async with (await stream_on(cluster)).producer("p") as producer:
                for number in range(len(told), upto):
                    await producer.append(b"%d" % number, seq=number)
                    told.append(number)
                    await producer.writer.roll()

        cluster.die_after(at)
        if not await cluster.live(lambda: life(cluster, 9)):  # noqa: B023
            break
        deaths += 1
        after = cluster.sibling()
        assert not await after.live(lambda: life(after, 11))  # noqa: B023
        stream = await stream_on(after)
        assert await values_of(after, stream) == [b"%d" % number for number in range(11)]
        assert len((await chain_of(stream)).pages) > 2
        await check_stream(after, stream)
    else:
        pytest.fail("the story never came to its end")
    assert deaths > 20
