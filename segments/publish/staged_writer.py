"""Shell: what one task writes of a batch, before anybody can read it.

Few rows go along in the task's message. More go into a ledger of this attempt alone, whose entries count from 0; it is
closed before the message says so, and nobody reads it until the stream's node names it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from bookkeeper.access import ResourceKind
from bookkeeper.access.ownership import owner_text
from bookkeeper.errors import BookKeeperError, MetadataUnavailableError, SessionExpiredError
from segments.chain import RecentHead, SegmentContents, stream_tags
from segments.config import StreamConfig
from segments.entries.columns import RecordColumns
from segments.entries.compression import Compression
from segments.entries.entry import encode_entry, encode_payload, encode_pieces
from segments.entries.footer import FooterBuilder
from segments.entries.layout import EntryKind
from segments.entries.stored_entry import StoredEntry, decode_entry
from segments.error_translation import worded
from segments.errors import RecordTooLargeError
from segments.retention.stagings import RENEWED_S, Stagings
from segments.write.state.contents_tally import ContentsTally

if TYPE_CHECKING:
    from bookkeeper import BookKeeper, WriteHandle

INLINE_BYTES: Final = 64 * 1024
"""A task with so many bytes of entries, or fewer, sends them in its message."""
IN_FLIGHT_BYTES: Final = 8 << 20
"""Bytes of entries that are under way to bookies."""
_PAUSE_S: Final = 0.5
"""Before metadata that did not answer are asked again."""

T = TypeVar("T")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StagedLedger:
    """A closed ledger, ready to be published."""

    ledger_id: int
    contents: SegmentContents


@dataclass(frozen=True, slots=True)
class StagedRows:
    """What a task's message carries."""

    staging: str
    stream_id: str
    records: int
    ledger: StagedLedger | None = None
    entries: tuple[bytes, ...] = ()
    """The rows themselves, where they are few; their sequence numbers count from 0."""


class StagedWriterFront(Protocol):
    """What takes the rows of one task, for a publisher of this process's cluster or of gateways."""

    async def add(self, *parts: RecordColumns) -> None: ...

    async def finish(self, *parts: RecordColumns) -> StagedRows: ...

    async def abandon(self) -> None: ...


class StagedWriter:
    """Writes the rows of one task.

    Args:
        staging: the batch that they belong to.
        app: who writes it.
        inline: how many bytes of entries go along in the message.
        patience_s: how long a cluster that does not answer is asked again for a ledger and for its end: rows that were
            taken cannot be given once more.
        compression: of the ledger; None: as ``config`` says. Rows in a message are compressed as ``config`` says,
            because whoever publishes them must be able to read them.
    """

    def __init__(
        self,
        client: BookKeeper,
        stream: tuple[str, str],
        config: StreamConfig,
        staging: str,
        app: str,
        *,
        inline: int = INLINE_BYTES,
        patience_s: float = 0.0,
        compression: Compression | None = None,
    ) -> None:
        self._client, self._config, self._staging, self._app, self._inline = client, config, staging, app, inline
        self._name, self._stream_id = stream
        self._patience_s = patience_s
        self._stagings = Stagings(client, self._stream_id, self._name)
        self._of_messages = Compression.named(config.compression)
        self._compression = self._of_messages if compression is None else compression
        self._for_ledger = False
        """Whether something was compressed that goes into no message."""
        self._tally = ContentsTally()
        self._footer = FooterBuilder(filtered=False)
        self._kept: list[bytes] = []
        self._kept_bytes = 0
        self._ledger: WriteHandle | None = None
        self._under_way: deque[tuple[asyncio.Future[Any], int]] = deque()
        self._under_way_bytes = 0
        self._renewed_s = 0.0
        clock = client.services.seams.clock
        self._began_ms, self._began_s = clock.wall_ms(), clock.monotonic()

    @property
    def staging(self) -> str:
        """The batch that the rows belong to."""
        return self._staging

    async def begin(self) -> None:
        """Make the ledger ahead of the rows, so that they need not wait for it.

        Raises: StreamError; ``abandon`` comes then.
        """
        if self._ledger is None:
            self._ledger = await self._new_ledger()

    async def add(self, *parts: RecordColumns) -> None:
        """Take rows; each part is one entry, or several pieces of one. Returns when there is room for more.

        Raises: StreamError: they cannot be written; the batch has failed.
        """
        for columns in parts:
            if columns.count:
                await self._write(self._encoded(columns))

    def _encoded(self, columns: RecordColumns) -> list[bytes]:
        append_ms = self._client.services.seams.clock.wall_ms()
        first = self._tally.records
        few = self._ledger is None and self._kept_bytes + columns.size <= self._inline
        packed = self._of_messages if few else self._compression
        self._for_ledger |= packed is not self._of_messages
        try:
            payloads = [encode_entry(columns, first_seq_no=first, append_ms=append_ms, compression=packed)]
        except RecordTooLargeError:
            payloads = encode_pieces(columns, first_seq_no=first, append_ms=append_ms, compression=packed)
        for payload in payloads:
            self._tally.add_entry(self._tally.last_entry + 1, len(payload))
        self._footer.add_entry(
            self._tally.last_entry,
            sum(map(len, payloads)),
            first,
            append_ms,
            last_txid=columns.last_txid,
            max_event_ms=columns.max_event_ms,
        )
        if columns.keys is not None:
            self._footer.add_keyed(columns.count)
        self._tally.add_records(
            columns.count,
            append_ms,
            (columns.first_txid, columns.last_txid),
            (columns.min_event_ms, columns.max_event_ms),
        )
        return payloads

    async def _write(self, payloads: list[bytes]) -> None:
        if self._ledger is None:
            self._kept += payloads
            self._kept_bytes += sum(map(len, payloads))
            if self._kept_bytes <= self._inline and not self._for_ledger:
                return
            payloads, self._kept, self._kept_bytes = self._kept, [], 0
            self._ledger = await self._new_ledger()
        with worded(f"writing a batch for stream {self._name}", self._name):
            await self._renew()
            for payload in payloads:
                while self._under_way and self._under_way_bytes + len(payload) > IN_FLIGHT_BYTES:
                    await self._take_oldest()
                self._send(self._ledger, payload)

    def _send(self, ledger: WriteHandle, payload: bytes) -> None:
        self._under_way.append((ledger.append_nowait(payload), len(payload)))
        self._under_way_bytes += len(payload)

    async def _take_oldest(self) -> None:
        future, size = self._under_way.popleft()
        self._under_way_bytes -= size
        await future

    async def _new_ledger(self) -> WriteHandle:
        config = self._config
        clock = self._client.services.seams.clock

        async def made() -> WriteHandle:
            await self._stagings.begin(self._staging, self._app, self._now_ms())
            self._renewed_s = clock.monotonic()
            chain, _ = await RecentHead(self._client.metadata_store, self._stream_id, self._name).read()
            return await self._client.create_ledger(
                ensemble=config.ensemble,
                write_quorum=config.write_quorum,
                ack_quorum=config.ack_quorum,
                digest=config.ledger_digest,
                password=chain.password,
                custom_metadata={**stream_tags(self._stream_id), "staging": self._staging.encode()},
                owner=owner_text(ResourceKind.STREAMS, self._name),
                when_short="name_absent" if config.ack_quorum > 1 else "fail",
            )

        with worded(f"making a ledger for a batch of stream {self._name}", self._name):
            ledger = await self._patiently(made)
            await self._patiently(lambda: self._stagings.note_ledger(self._staging, ledger.id))
        return ledger

    async def _patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        """Call again while the cluster does not answer."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._patience_s
        while True:
            try:
                return await call()
            except BookKeeperError as error:
                if not (error.retryable or isinstance(error, SessionExpiredError)) or loop.time() + _PAUSE_S > until:
                    raise
                _log.warning("a batch for stream %s waits: %s", self._name, error)
            await asyncio.sleep(_PAUSE_S)

    def _now_ms(self) -> int:
        """The wall clock, which a step does not put back: a batch that looks older than it is would be given up."""
        clock = self._client.services.seams.clock
        return max(clock.wall_ms(), self._began_ms + int(1000 * (clock.monotonic() - self._began_s)))

    async def _renew(self) -> None:
        clock = self._client.services.seams.clock
        if clock.monotonic() > self._renewed_s + RENEWED_S:
            self._renewed_s = clock.monotonic()
            try:
                await self._stagings.renew(self._staging, self._app, self._now_ms())
            except (MetadataUnavailableError, SessionExpiredError) as error:
                _log.warning("a batch for stream %s is renewed later: %s", self._name, error)

    async def finish(self, *parts: RecordColumns) -> StagedRows:
        """Take the last rows, as ``add`` does. When this returns, all are durable on their ack quorum, or in the
        message. Raises StreamError; ``abandon`` comes then."""
        await self.add(*parts)
        tally = self._tally
        if self._ledger is None:
            return StagedRows(self._staging, self._stream_id, tally.records, entries=tuple(self._kept))
        footer = encode_payload(
            EntryKind.FOOTER,
            self._footer.build().encode(),
            next_seq_no=tally.records,
            append_ms=tally.last_append_ms or 0,
            compression=self._compression,
        )
        with worded(f"writing a batch for stream {self._name}", self._name):
            tally.add_entry(tally.last_entry + 1, len(footer))
            self._send(self._ledger, footer)  # at once: it need not wait for the entries before it
            try:
                while self._under_way:
                    await self._take_oldest()
            finally:
                self._wait_no_more()
            await self._patiently(self._ledger.close)
        staged = StagedLedger(self._ledger.id, tally.contents(tally.last_entry))
        return StagedRows(self._staging, self._stream_id, tally.records, staged)

    def _wait_no_more(self) -> None:
        """Nobody asks any more what became of the entries that are under way."""
        while self._under_way:
            self._under_way.popleft()[0].add_done_callback(_retrieve_error)

    async def abandon(self) -> None:
        """Write no more. The ledger is deleted with its staging."""
        self._wait_no_more()
        if self._ledger is not None:
            await self._ledger.abandon()


def _retrieve_error(future: asyncio.Future[Any]) -> None:
    """Retrieve an append's error, so that the loop does not report it as never retrieved."""
    if not future.cancelled():
        future.exception()


def by_staging(ledgers: Sequence[tuple[StagedLedger, str]]) -> dict[str, list[int]]:
    """The ledgers of each staging."""
    found: dict[str, list[int]] = {}
    for each, staging in ledgers:
        found.setdefault(staging, []).append(each.ledger_id)
    return found


def records_of(entries: Sequence[bytes]) -> Iterator[RecordColumns]:
    """The rows of a message's entries. Raises EntryCorruptError."""
    pieces: list[StoredEntry] = []
    for at, payload in enumerate(entries):
        entry = decode_entry(payload, 0, at)
        if entry.piece is not None:
            pieces.append(entry)
            if not entry.piece.is_last:
                continue
            entry, pieces = entry.assembled(pieces), []
        yield entry.columns()
