"""Exports a stream to a checksummed file, and imports one with its positions kept.

Whole segments are exported, so that every entry keeps its number. A stream that begins inside of its first segment
begins there in the copy, too. The copy has an id and ledgers of its own; sequence numbers, transaction ids, times,
headers and what is remembered of producers are in the entries, and come with them.

An import becomes visible at its end, in one write. One that dies leaves ledgers that no stream names, which
``LeakedLedgers`` finds.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from bookkeeper.access import ResourceKind
from bookkeeper.access.ownership import owner_text
from bookkeeper.amounts import counted
from bookkeeper.chains.password import new_password
from bookkeeper.errors import BookKeeperError, KeyExistsError, NoSuchKeyError, in_words
from bookkeeper.meta import Metadata
from bookkeeper.meta.store import OUTCOME_UNKNOWN, Create, Delete, Operation
from bookkeeper.outcome import Outcome
from segments.chain import (
    StreamChain,
    StreamHead,
    StreamPages,
    StreamSegment,
    decode_chain,
    encode_chain,
    ledger_tags,
)
from segments.checks.scan import SegmentScanner
from segments.config import StreamConfig, from_stored_table
from segments.entries.stored_entry import decode_entry
from segments.error_translation import worded
from segments.errors import StreamCorruptError, StreamExistsError, StreamUnavailableError
from segments.names import check_stream_name, name_path, names_path, new_stream_id, stream_path, streams_path
from segments.position import Position
from segments.position_format import decode_position, encode_position
from segments.retention.agreed_time import AgreedTime
from segments.retention.deletion import remove_remains
from segments.retention.hold_node import HoldNode
from segments.retention.holds import Hold
from segments.retention.removal import delete_ledgers
from segments.transfer.bundle import END, ENTRY, HEADER, SEGMENT, BundleWriter, Frame, Totals, read_bundle

if TYPE_CHECKING:
    from bookkeeper import BookKeeper, WriteHandle

_log = logging.getLogger(__name__)

HOLD_S: Final = 24 * 3600.0
"""Seconds for which an export holds what it copies, should it die."""

IN_FLIGHT_BYTES: Final = 8 * 1024 * 1024
"""Bytes of entries that an import has under way."""


@dataclass(frozen=True, slots=True)
class ExportResult:
    """What an export wrote."""

    start: Position
    end: Position
    """The position behind the last entry."""
    totals: Totals


class StreamExport:
    """An export: ``async for chunk in export.chunks()``; then ``export.result``.

    What is confirmed when it begins is copied. A hold keeps it until the end.
    """

    def __init__(
        self,
        client: BookKeeper,
        node: StreamHead,
        config: StreamConfig,
        *,
        start: Position = Position.EARLIEST,
        stop: Position = Position.LATEST,
    ) -> None:
        """``start`` and ``stop`` are rounded to whole segments and whole entries: the copy has a little more."""
        self._client, self._node, self._config = client, node, config
        self._start, self._stop = start, stop
        self._writer = BundleWriter()
        self._end = start
        self.result: ExportResult | None = None
        """Set at the end."""

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The file's bytes, in order.

        Raises:
            StreamConfigError: ``start`` is before the stream's beginning, or nothing is between the two.
            StreamCorruptError: an entry cannot be read: a copy is whole, or there is none. StreamNotFoundError,
            StreamUnavailableError, StreamMetadataError.
        """
        name, clock = self._node.name, self._client.services.seams.clock
        holds = HoldNode(self._client.metadata_store, self._node)
        with worded(f"exporting stream {name}", name):
            now_ms = await AgreedTime(self._client, self._node).now_ms()  # others' holds that have ended are swept
        mark = f"export-{self._client.services.seams.rng.getrandbits(64):016x}"
        until_ms = max(now_ms, clock.wall_ms()) + int(HOLD_S * 1000)
        wanted = Hold(mark, self._start, self._stop, until_ms, now_ms, "an export is running")
        hold = await holds.put(wanted, now_ms)
        try:
            with worded(f"exporting stream {name}", name):
                chain, _ = await self._node.read()
                published = any(segment.is_published for segment in chain.segments)
                yield self._writer.header(self._about(chain, hold.start), published=published)
                for segment in chain.segments:
                    passed = segment.last is not None and segment.last < hold.start  # the hold does not keep it
                    if segment.number >= hold.start.segment and not passed and segment.first < self._stop:
                        async for chunk in self._segment(segment):
                            yield chunk
                yield self._writer.end()
                self.result = ExportResult(hold.start, self._end, self._writer.totals)
        finally:
            await holds.release(mark)

    def _about(self, chain: StreamChain, start: Position) -> dict[str, Any]:
        following = chain.from_number(start.segment)
        seq_no = chain.begin_seq_no if start == chain.first_position else None
        if seq_no is None and following is not None and start <= following.first:
            seq_no = following.start_seq_no
        return {
            "stream": self._node.name,
            "stream_id": self._node.stream_id,
            "exported_ms": self._client.services.seams.clock.wall_ms(),
            "config": asdict(self._config),
            "start": encode_position(chain.behind_last(start)),
            "start_seq_no": seq_no,
            "next_number": chain.next_number,
            "records": chain.records,
            "last_txid": chain.last_txid,
            "sealed": chain.sealed and self._stop == Position.LATEST,
        }

    async def _segment(self, segment: StreamSegment) -> AsyncGenerator[bytes, None]:
        about = {
            "number": segment.number,
            "start_seq_no": segment.start_seq_no,
            "created_ms": segment.created_ms,
            "completed_ms": segment.completed_ms,
            **({"published": True} if segment.is_published else {}),
        }
        yield self._writer.segment(about)
        async with await self._client.open_ledger(segment.ledger_id, None, recovery=False) as ledger:
            last = ledger.last_add_confirmed if segment.is_open else segment.contents.last_entry
            if segment.number == self._stop.segment:
                last = min(last, self._stop.entry if self._stop.slot else self._stop.entry - 1)
            if last < 0:
                return
            async for first, entries in ledger.read_batches(0, last):
                for entry_id, data in enumerate(entries, first):
                    decode_entry(data, segment.number, entry_id, segment.base)
                    self._end = Position(segment.number, entry_id + 1, 0)
                    yield self._writer.entry(entry_id, data)


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What an import made, or would make."""

    name: str
    stream_id: str
    start: Position
    segments: int
    records: int
    totals: Totals


async def import_stream(
    client: BookKeeper,
    chunks: AsyncIterator[bytes],
    *,
    name: str | None = None,
    changes: dict[str, Any] | None = None,
    dry_run: bool = False,
    may_make: Callable[[str], Awaitable[None]] | None = None,
) -> ImportResult:
    """Make a stream of an exported file: under its old name, or another. With ``dry_run`` the file is only verified.

    ``changes`` are settings that shall differ, replication, say. ``may_make`` gets the stream's name, which may be that
    in the file, before anything is made, and raises if there must be none.

    Raises:
        StreamCorruptError, UnsupportedStreamFormatError: the file cannot be believed. StreamExistsError: the name is
        taken. StreamNameError, StreamConfigError. StreamUnavailableError, StreamMetadataError. In all cases there is
        no new stream; after a StreamMetadataError, or a cancellation, at the last step there may be one, and then it is
        whole.
    """
    importing = StreamImport(client, name, changes or {}, dry_run=dry_run, may_make=may_make)
    try:
        async for frame in read_bundle(chunks):
            with worded("importing a stream", importing.name):
                await importing.take(frame)
        with worded(f"importing stream {importing.name}", importing.name):
            return await importing.publish()
    except BaseException:
        await importing.abandon()
        raise


class StreamImport:
    """An import: it takes the frames of a file, and publishes the stream."""

    def __init__(
        self,
        client: BookKeeper,
        name: str | None,
        changes: dict[str, Any],
        *,
        dry_run: bool,
        may_make: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self._client, self._metadata = client, client.metadata_store
        self.name = "" if name is None else check_stream_name(name)
        self._changes, self._dry_run, self._may_make = changes, dry_run, may_make
        self._stream_id = new_stream_id(client.services.seams.rng.getrandbits(128))
        self._config = StreamConfig()
        self._chain = StreamChain(self._stream_id, password=new_password(client.services.seams.rng))
        self._about: dict[str, Any] = {}
        self._segment: dict[str, Any] | None = None
        self._ledger: WriteHandle | None = None
        self._under_way: list[Any] = []
        self._under_way_bytes = 0
        self._scanner = SegmentScanner(0)
        self._made: list[int] = []
        self._totals = Totals(0, 0, 0)
        self._may_be_there = False
        """Whether the write that makes the stream was sent."""

    async def take(self, frame: Frame) -> None:
        """Take the next frame."""
        if frame.kind == HEADER:
            await self._begin(frame.about)
        elif frame.kind == SEGMENT:
            await self._complete()
            await self._start_segment(frame.about)
        elif frame.kind == ENTRY:
            await self._append(frame.entry_id, frame.content)
        elif frame.kind == END:
            await self._complete()
            self._totals = Totals(frame.about["segments"], frame.about["entries"], frame.about["bytes"])

    async def _begin(self, about: dict[str, Any]) -> None:
        self._about = about
        try:
            self.name = self.name or check_stream_name(about["stream"])
            self._config = from_stored_table(about["config"]).patched(self._changes)
            self._start = decode_position(about["start"])
            self._chain = replace(
                self._chain,
                start=self._start,
                start_seq_no=about["start_seq_no"],
                next_number=about["next_number"],
                records=about["records"],
                last_txid=about["last_txid"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise StreamCorruptError("the exported stream's header cannot be understood") from error
        if self._may_make is not None:
            await self._may_make(self.name)
        await self._metadata.store.sync(names_path(self._metadata))
        if await self._metadata.store.exists(name_path(self._metadata, self.name)) is not None:
            raise StreamExistsError(f"there is a stream {self.name} already", stream=self.name)
        if not self._dry_run:
            await _create(self._metadata, _arriving(self._metadata, self._stream_id), ephemeral=True)

    async def _start_segment(self, about: dict[str, Any]) -> None:
        self._segment = about
        self._scanner = SegmentScanner(about["number"], about["start_seq_no"] if about.get("published") else 0)
        if not self._dry_run:
            quorum = self._config.quorum
            self._ledger = await self._client.create_ledger(
                ensemble=quorum.ensemble_size,
                write_quorum=quorum.write_quorum,
                ack_quorum=quorum.ack_quorum,
                digest=self._config.ledger_digest,
                password=self._chain.password,
                custom_metadata=ledger_tags(self._stream_id, 0),
                owner=owner_text(ResourceKind.STREAMS, self.name),
            )
            self._made.append(self._ledger.id)

    async def _append(self, entry_id: int, content: bytes) -> None:
        if self._segment is None:
            raise StreamCorruptError("the exported stream has an entry before its first segment")
        self._scanner.add(entry_id, content)
        if damaged := self._scanner.result().damaged:
            raise StreamCorruptError(f"segment {self._segment['number']} of the exported stream: {damaged[0]}")
        if self._ledger is not None:
            self._under_way.append(content)
            self._under_way_bytes += len(content)
            if self._under_way_bytes >= IN_FLIGHT_BYTES:
                await self._flush()

    async def _flush(self) -> None:
        entries, self._under_way, self._under_way_bytes = self._under_way, [], 0
        if entries and self._ledger is not None:
            await self._ledger.append_many(entries)

    async def _complete(self) -> None:
        """The segment that was taken is complete: it joins the chain."""
        about, self._segment = self._segment, None
        if about is None:
            return
        if self._scanner.result().contents.last_entry < 0:  # it was open, and had nothing yet
            await self._drop()
            return
        await self._flush()
        ledger_id = -1 - about["number"]
        if self._ledger is not None:
            ledger_id = self._ledger.id
            await self._ledger.close()
            self._ledger = None
        scan = self._scanner.result()
        if scan.start_seq_no not in (None, about["start_seq_no"]):
            raise StreamCorruptError(
                f"segment {about['number']} of the exported stream begins at record {scan.start_seq_no}, and "
                f"{about['start_seq_no']} was announced"
            )
        published = bool(about.get("published"))
        segment = StreamSegment(
            about["number"], ledger_id, about["start_seq_no"], about["created_ms"], is_published=published
        )
        completed_ms = about["completed_ms"]
        if completed_ms is None:
            completed_ms = self._client.services.seams.clock.wall_ms()
        self._chain = replace(self._chain, recent=(*self._chain.recent, segment.complete(scan.contents, completed_ms)))

    async def _drop(self) -> None:
        """The segment that was taken is none."""
        ledger, self._ledger = self._ledger, None
        if ledger is not None:
            await ledger.close()
            self._made.remove(ledger.id)
            await delete_ledgers(self._client, [ledger.id], self.name)

    async def publish(self) -> ImportResult:
        """Give the stream its name. Raises StreamExistsError, StreamCorruptError."""
        chain = self._joined()
        outcome = ImportResult(
            self.name,
            self._stream_id,
            chain.first_position,
            chain.count,
            chain.listed_records,
            self._totals,
        )
        if self._dry_run:
            return outcome
        await self._write(chain)
        self._made.clear()
        return outcome

    def _joined(self) -> StreamChain:
        """The chain, checked: its segments follow each other."""
        segments = self._chain.segments
        chain = self._chain
        if segments:
            last = segments[-1]
            txids = [chain.last_txid, *(segment.contents.last_txid for segment in segments)]
            known = [txid for txid in txids if txid is not None]
            chain = replace(
                chain,
                next_number=last.number + 1,
                records=last.start_seq_no + last.records,
                last_txid=max(known, default=None),
                sealed=bool(self._about["sealed"]),
            )
        return decode_chain(encode_chain(chain))

    async def _write(self, chain: StreamChain) -> None:
        metadata, store = self._metadata, self._metadata.store
        name, home = name_path(metadata, self.name), stream_path(metadata, self._stream_id)
        for parent in (names_path(metadata), streams_path(metadata)):
            await _create(metadata, parent)
        chain = await StreamPages(metadata, self._stream_id).write_folded(chain)
        steps: list[Operation] = [
            *(() if chain.pages else (Create(home),)),
            Create(f"{home}/config", self._config.encode()),
            Create(f"{home}/chain", encode_chain(chain)),
            Create(name, self._stream_id.encode()),
            Delete(_arriving(metadata, self._stream_id), None),
        ]
        self._may_be_there = True
        while True:
            try:
                await store.multi(steps)
            except OUTCOME_UNKNOWN:
                if await self._is_there():
                    return
            except KeyExistsError as error:
                raise StreamExistsError(f"there is a stream {self.name} already", stream=self.name) from error
            except NoSuchKeyError as error:
                raise StreamUnavailableError(
                    "the session with the metadata store ended while the stream was imported: import it again",
                    outcome=Outcome.REJECTED,
                ) from error
            else:
                return

    async def _is_there(self) -> bool:
        """Whether the stream was made."""
        chain = stream_path(self._metadata, self._stream_id, "chain")
        await self._metadata.store.sync(chain)
        return await self._metadata.store.exists(chain) is not None

    async def abandon(self) -> None:
        """Take back what was made, as far as that works; what is left is found by its tags. Once the stream may be
        there, its ledgers are deleted only if it is seen that it is not."""
        if self._ledger is not None:
            await self._ledger.abandon()
        if self._may_be_there:
            try:
                if await self._is_there():
                    return
            except BookKeeperError as error:
                _log.warning(
                    "stream %s was imported or not, which the metadata store does not tell now (%s): its %s "
                    "left, and found as leaked if there is no stream",
                    self.name,
                    in_words(error),
                    counted(len(self._made), "ledger", "is", "are"),
                )
                return
        await delete_ledgers(self._client, self._made, self.name)
        try:
            await self._metadata.store.delete(_arriving(self._metadata, self._stream_id), None)
            await remove_remains(self._metadata, self._stream_id)
        except BookKeeperError as error:
            _log.debug("the mark of an import ends with the session: %s", in_words(error))


def _arriving(metadata: Metadata, stream_id: str) -> str:
    """The value that says: ledgers of this id are needed, although there is no stream yet. Ends with the session."""
    return metadata.own("segments", "importing", stream_id)


async def _create(metadata: Metadata, path: str, *, ephemeral: bool = False) -> None:
    try:
        await metadata.store.create(path, ephemeral=ephemeral, parents=True)
    except KeyExistsError:
        pass
