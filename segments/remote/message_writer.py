"""What one task writes of a batch where it reaches gateways alone: all of its rows go along in its message."""

from __future__ import annotations

from typing import Final

from segments.entries.columns import RecordColumns
from segments.entries.compression import Compression
from segments.entries.entry import encode_entry, encode_pieces, fits_one_entry
from segments.errors import BatchRefusedError
from segments.publish import StagedRows

ENTRIES_BYTES: Final = 16 << 20
"""Bytes of rows that a batch may have in its tasks' messages: they go to the gateway in one."""


class MessageWriter:
    """Takes the rows of one task. Nothing is written anywhere before the batch is published.

    The gateway that publishes them writes them anew, with its own time and the stream's compression.

    Args:
        stream: its name and its id.
        staging: the batch that they belong to.
    """

    def __init__(self, stream: tuple[str, str], staging: str) -> None:
        self._name, self._stream_id = stream
        self._staging = staging
        self._entries: list[bytes] = []
        self._bytes = 0
        self._records = 0

    async def add(self, *parts: RecordColumns) -> None:
        """Take rows. Raises: BatchRefusedError: there is no room for so many. StreamError: they cannot be written."""
        for columns in parts:
            if not columns.count:
                continue
            if fits_one_entry(columns):
                made = [encode_entry(columns, first_seq_no=self._records, append_ms=0, compression=Compression.NONE)]
            else:
                made = encode_pieces(columns, first_seq_no=self._records, append_ms=0, compression=Compression.NONE)
            self._bytes += sum(map(len, made))
            if self._bytes > ENTRIES_BYTES:
                self._entries.clear()
                raise too_large(self._name, self._bytes, ENTRIES_BYTES)
            self._records += columns.count
            self._entries += made

    async def finish(self, *parts: RecordColumns) -> StagedRows:
        """Take the last rows; all of them, for the message of this task. Raises: as add."""
        await self.add(*parts)
        return StagedRows(self._staging, self._stream_id, self._records, entries=tuple(self._entries))

    async def abandon(self) -> None:
        """Forget the rows."""
        self._entries.clear()


def too_large(stream: str, size: int, most: int) -> BatchRefusedError:
    """For a batch with more bytes of rows in messages than it may have."""
    return BatchRefusedError(
        f"the batch has {size} bytes of rows that are in no ledger, and a gateway takes {most}: make batches "
        "smaller, or give tasks the cluster's own address beside the gateway's. Then each task with more than 64 KiB "
        "writes a ledger by itself, and fewer partitions (coalesce()) make more of those",
        stream=stream,
    )
