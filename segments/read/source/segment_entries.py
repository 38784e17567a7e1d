"""Reads single entries of a segment, for a search: whole entries, and the last one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bookkeeper.errors import BookKeeperError, CorruptionError, DataMissingError, NoSuchLedgerError
from segments.entries.layout import EntryKind
from segments.entries.stored_entry import StoredEntry, decode_entry
from segments.error_translation import stream_error
from segments.errors import EntryCorruptError, PositionTruncatedError, StreamCorruptError, StreamUnavailableError

if TYPE_CHECKING:
    from types import TracebackType

    from bookkeeper import ReadHandle
    from bookkeeper.client.known import KnownLedger
    from segments.chain import StreamSegment
    from segments.read.source.stream_source import StreamSource


class SegmentEntries:
    """One segment, opened to look at some of its entries: ``async with SegmentEntries(source, segment) as entries``."""

    def __init__(self, source: StreamSource, segment: StreamSegment) -> None:
        self._source = source
        self._segment = segment
        self._handle: ReadHandle | None = None

    async def __aenter__(self) -> SegmentEntries:
        self._handle = await self._source.open_segment(self._segment)
        if self._handle is None:
            name = self._source.name
            current = await self._source.chain.current(fresh=True)
            if current.find(self._segment.number) is None:
                raise PositionTruncatedError(
                    f"segment {self._segment} of stream {name} was truncated and removed meanwhile",
                    stream=name,
                    position=current.first_position,
                )
            raise StreamCorruptError(f"the ledger of segment {self._segment} of stream {name} is gone", stream=name)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._handle is not None:
            await self._handle.close()

    @property
    def _ledger(self) -> ReadHandle:
        assert self._handle is not None, "enter it first"
        return self._handle

    @property
    def last_entry(self) -> int:
        """The last entry that is confirmed; -1 if none is."""
        return self._ledger.last_add_confirmed

    @property
    def known(self) -> KnownLedger:
        """What a reader elsewhere must know of the ledger."""
        return self._ledger.known

    async def read(self, entry_id: int) -> StoredEntry:
        """One confirmed entry. Records in pieces come whole with their last piece.

        Raises:
            StreamCorruptError: it cannot be had, or is damaged. StreamUnavailableError.
        """
        entry = decode_entry(await self._payload(entry_id), self._segment.number, entry_id, self._segment.base)
        info = entry.piece
        if info is None or not info.is_last:
            return entry
        pieces: list[StoredEntry] = []
        first = entry_id - info.number
        for number in range(info.number if first >= 0 else 0):
            pieces.append(await self.header(first + number))
            if not pieces[-1].is_piece(number, info):
                break  # before more is read: how many there are is only what it says
        return entry.assembled([*pieces, entry])

    async def header(self, entry_id: int) -> StoredEntry:
        """One confirmed entry, a piece as it is. Raises: as read."""
        return decode_entry(await self._payload(entry_id), self._segment.number, entry_id, self._segment.base)

    async def last_with_records(self, low: int = 0) -> StoredEntry | None:
        """The last confirmed entry with records, whole; None if there is none from entry ``low`` on. A broken entry is
        passed over. Raises: StreamUnavailableError."""
        for entry_id in range(self.last_entry, low - 1, -1):
            try:
                if (entry := await self.read(entry_id)).count and entry.kind is EntryKind.DATA:
                    return entry
            except StreamCorruptError:
                continue
        return None

    async def end_seq_no(self) -> int:
        """The number behind the last confirmed record. Raises: StreamUnavailableError."""
        for entry_id in range(self.last_entry, -1, -1):
            try:
                entry = await self.header(entry_id)
            except EntryCorruptError:
                continue
            return entry.first_seq_no + entry.count
        return self._segment.start_seq_no

    async def _payload(self, entry_id: int) -> bytes:
        what = f"reading entry {entry_id} of segment {self._segment} of stream {self._source.name}"
        try:
            return await self._ledger.read_entry(entry_id)
        except (CorruptionError, DataMissingError) as error:
            raise EntryCorruptError(f"{what}: {error}", stream=self._source.name) from error
        except NoSuchLedgerError as error:
            raise StreamUnavailableError(f"{what}: the segment is being removed", stream=self._source.name) from error
        except BookKeeperError as error:
            raise stream_error(error, what, self._source.name) from error
