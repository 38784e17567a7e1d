"""Shell: looks whether a ledger holds what a task's message says of it. Whoever publishes need not have written it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from bookkeeper.amounts import counted
from bookkeeper.encryption import RECORD_NAME as ENCRYPTED
from bookkeeper.errors import NoSuchLedgerError
from segments.chain import SegmentContents, stream_tags
from segments.entries.layout import EntryKind
from segments.entries.stored_entry import decode_entry
from segments.error_translation import worded
from segments.errors import BatchRefusedError, StreamCorruptError

if TYPE_CHECKING:
    from bookkeeper import BookKeeper
    from bookkeeper.ledger import LedgerMetadata
    from segments.publish.staged_writer import StagedLedger

AT_ONCE: Final = 16
"""Ledgers that are looked at together."""


async def check_staged(
    client: BookKeeper, stream: tuple[str, str], ledgers: Sequence[tuple[StagedLedger, str]]
) -> None:
    """Check that ledgers belong to their stagings, are closed, and hold what is said of them.

    Args:
        stream: its name and its id.
        ledgers: each with its staging.

    Raises:
        BatchRefusedError: one is gone, or was written for something else. StreamCorruptError: one holds something
            else. StreamUnavailableError, StreamMetadataError. Nothing was changed.
    """
    for at in range(0, len(ledgers), AT_ONCE):
        looks = (_check(client, stream, *each) for each in ledgers[at : at + AT_ONCE])
        for found in await asyncio.gather(*looks, return_exceptions=True):
            if found is not None:
                raise found


async def _check(client: BookKeeper, stream: tuple[str, str], ledger: StagedLedger, staging: str) -> None:
    name, stream_id = stream
    with worded(f"publishing to stream {name}", name):
        try:
            metadata = await client.metadata(ledger.ledger_id)
        except NoSuchLedgerError as error:
            raise BatchRefusedError(
                f"ledger {ledger.ledger_id} of the batch does not exist any more: the batch was given up, because "
                "nobody had renewed it; write it again",
                stream=name,
            ) from error
        tags = {**stream_tags(stream_id), "staging": staging.encode()}
        if any(metadata.custom.get(tag) != value for tag, value in tags.items()):
            raise BatchRefusedError(
                f"ledger {ledger.ledger_id} was not written for this batch of stream {name}", stream=name
            )
        if not metadata.is_closed or metadata.last_entry != ledger.contents.last_entry:
            raise StreamCorruptError(
                f"ledger {ledger.ledger_id} of a batch for stream {name} does not end at entry "
                f"{ledger.contents.last_entry}, as its task has said: the batch is not published",
                stream=name,
            )
        if (wrong := await _wrong(client, ledger, metadata)) is not None:
            raise StreamCorruptError(
                f"ledger {ledger.ledger_id} of a batch for stream {name} does not hold what its task has said "
                f"({wrong}): the batch is not published",
                stream=name,
            )


async def _wrong(client: BookKeeper, ledger: StagedLedger, metadata: LedgerMetadata) -> str | None:
    """What is not as it is said; None: all is. The last entry is the footer: it comes behind the last record, and says
    how many there are. The size is compared where entries are stored as they are: an encrypted ledger's length is that
    of what was made of them, which may be compressed."""
    said = ledger.contents
    async with await client.open_ledger(ledger.ledger_id, None, recovery=False) as reader:
        footer = decode_entry(await reader.read_entry(said.last_entry), 0, said.last_entry)
    if footer.kind is not EntryKind.FOOTER or said.footer_entry != said.last_entry:
        return "its last entry is no footer"
    if footer.first_seq_no != said.records:
        return f"it has {counted(footer.first_seq_no, 'record')}, and not {said.records}"
    if ENCRYPTED not in metadata.custom and metadata.length != said.bytes:
        return f"it has {metadata.length} bytes, and not {said.bytes}"
    return None if _is_inside(said) else "its last record is not in it"


def _is_inside(said: SegmentContents) -> bool:
    if said.last is None:
        return said.records == 0
    entry, slot = said.last
    return 0 <= entry < said.last_entry and 0 <= slot < said.records
