"""A stream's settings may change while it is written: the next segment has them."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from segments.config import StreamConfig
from segments.errors import MissingLibraryError
from segments.write.ledgers.ledger_allocator import LedgerAllocator
from segments.write.output.entry_sender import EntrySender
from segments.write.segment.rolling import Rolling, roll_limits

_log = logging.getLogger(__name__)

ReadConfig = Callable[[], Awaitable[StreamConfig]]
"""Reads the stream's settings as they are now. Raises StreamError."""


async def refresh_settings(
    stream: str, sender: EntrySender, rolling: Rolling, allocator: LedgerAllocator, read: ReadConfig | None
) -> None:
    """Take over changed settings. Raises StreamError: they could not be read."""
    before = sender.config
    if read is None or (config := await read()) == before:
        return
    try:
        sender.change(config)
    except MissingLibraryError as error:
        _log.warning("stream %s is compressed as before, and not as its settings say: %s", stream, error)
    rolling.change(roll_limits(config))
    if (config.quorum, config.digest) != (before.quorum, before.digest):
        await allocator.replace()
