"""A stream whose entries a test writes itself, one by one, without a writer: any entry, also a broken one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from bookkeeper import BookKeeper, WriteHandle
from bookkeeper.testing.cluster import SimCluster
from segments.chain import SegmentContents, StreamChain, StreamHead, ledger_tags
from segments.entries.columns import RecordColumns
from segments.entries.entry import encode_entry, encode_payload, encode_pieces
from segments.entries.footer import FooterBuilder
from segments.entries.layout import EntryKind
from segments.position import EARLIEST, Position
from segments.read.options import ReadOptions
from segments.read.positions.locator import Locator
from segments.read.reader import Reader
from segments.read.source.stream_source import StreamSource
from segments.record import StoredRecord
from segments.seek import Seek


class BuiltStream:
    """A stream without a writer. Records are numbered: the value of record n is ``b"n"``."""

    def __init__(self, client: BookKeeper, stream_id: str = "built") -> None:
        self.client = client
        self.node = StreamHead(client.metadata_store, stream_id, "built")
        self.source = StreamSource(client, self.node)
        self.locator = Locator(self.source, self._no_cursor)
        self.next_seq_no = 0
        self.ledger: WriteHandle | None = None
        self._clear()

    def _clear(self) -> None:
        self.entries = 0
        self.records = 0
        self.bytes = 0
        self.last: tuple[int, int] | None = None
        self.txids: list[int] = []
        self.times: list[int] = []
        self.events: list[int] = []
        self.footer = FooterBuilder()

    @classmethod
    async def create(cls, client: BookKeeper) -> BuiltStream:
        stream = cls(client)
        await stream.node.create_if_absent(StreamChain(stream_id="built").claim("test", "n"))
        return stream

    async def change(self, step: Callable[[StreamChain], StreamChain]) -> StreamChain:
        chain, version = await self.node.read()
        changed = step(chain)
        await self.node.write(changed, version)
        return changed

    async def chain(self) -> StreamChain:
        return (await self.node.read())[0]

    async def start(self) -> None:
        """Start a segment."""
        self.ledger = await self.client.create_ledger(custom_metadata=ledger_tags("built", 1))
        ledger_id = self.ledger.id
        await self.change(lambda chain: chain.start_segment(ledger_id, 0))
        self._clear()

    async def add(
        self,
        count: int = 1,
        *,
        txids: Sequence[int] | None = None,
        append_ms: int = 0,
        lost: int = 0,
        columns: RecordColumns | None = None,
    ) -> None:
        """Append an entry with ``count`` records, as if ``lost`` records had come before it."""
        self.next_seq_no += lost
        columns = columns or RecordColumns.of_values(
            [b"%d" % n for n in range(self.next_seq_no, self.next_seq_no + count)], txids=txids
        )
        await self.raw(encode_entry(columns, first_seq_no=self.next_seq_no, append_ms=append_ms))
        self._count(columns, append_ms)

    async def add_pieces(self, value: bytes, upto: int | None = None) -> None:
        """Append one record that does not fit into an entry; with ``upto`` only its first pieces."""
        columns = RecordColumns.of_values([value])
        for piece in encode_pieces(columns, first_seq_no=self.next_seq_no, append_ms=0)[:upto]:
            await self.raw(piece)
        if upto is None:
            self._count(columns, 0)

    def _count(self, columns: RecordColumns, append_ms: int) -> None:
        self.footer.add_entry(
            self.entries - 1, 70_000, self.next_seq_no, append_ms,
            last_txid=columns.last_txid, max_event_ms=columns.max_event_ms,
        )  # fmt: skip
        self.next_seq_no += columns.count
        self.records += columns.count
        self.last = (self.entries - 1, columns.count - 1)
        self.txids += [t for t in (columns.first_txid, columns.last_txid) if t is not None]
        self.events += [t for t in (columns.min_event_ms, columns.max_event_ms) if t is not None]
        self.times.append(append_ms)

    async def control(self) -> None:
        """Append an entry without records."""
        await self.raw(encode_payload(EntryKind.CONTROL, b"", next_seq_no=self.next_seq_no, append_ms=0))

    async def raw(self, payload: bytes) -> None:
        """Append any bytes as an entry."""
        assert self.ledger is not None
        await self.ledger.append(payload)
        await asyncio.sleep(0.01)  # until the explicit LAC has arrived
        self.entries += 1
        self.bytes += len(payload)

    def contents(self, footer_entry: int | None = None) -> SegmentContents:
        return SegmentContents(
            self.records,
            self.bytes,
            self.entries - 1,
            self.last,
            min(self.txids, default=None),
            max(self.txids, default=None),
            min(self.times, default=None),
            max(self.times, default=None),
            min(self.events, default=None),
            max(self.events, default=None),
            footer_entry,
        )

    async def complete(self, *, footer: bool = False, record: bool = True) -> None:
        """Close the segment's ledger; ``record=False``: as a writer that dies before it has said so."""
        footer_entry = None
        if footer:
            footer_entry = self.entries
            payload = self.footer.build().encode()
            await self.raw(encode_payload(EntryKind.FOOTER, payload, next_seq_no=self.next_seq_no, append_ms=0))
        assert self.ledger is not None
        await self.ledger.close()
        if record:
            await self.say_completed(footer_entry)

    async def say_completed(self, footer_entry: int | None = None) -> None:
        opened = (await self.chain()).open_segment
        assert opened is not None
        await self.change(lambda chain: chain.complete(opened.number, self.contents(footer_entry), 1))

    async def segment(self, *counts: int, footer: bool = False) -> None:
        """A completed segment with entries of so many records."""
        await self.start()
        for count in counts:
            await self.add(count)
        await self.complete(footer=footer)

    def reader(self, start: Seek = EARLIEST, **options: object) -> Reader:
        return Reader(self.source, self.locator, start, ReadOptions(**options))  # type: ignore[arg-type]

    async def _no_cursor(self, name: str) -> tuple[int, Position]:
        raise AssertionError(name)


async def numbers(reader: Reader) -> list[int]:
    """The numbers of the records up to the reader's end; it is closed then."""
    async with reader:
        found = []
        async for record in reader:
            assert isinstance(record, StoredRecord)
            assert record.value == b"%d" % record.seq_no
            found.append(record.seq_no)
        return found


def simulated(story: Callable[[BuiltStream], Awaitable[None]], seed: int = 1) -> None:
    """Run a story with a stream on a simulated cluster."""
    cluster = SimCluster(seed=seed)

    async def run(cluster: SimCluster) -> None:
        async with cluster.connect() as client:
            await story(await BuiltStream.create(client))

    cluster.run(run)
