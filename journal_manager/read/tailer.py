"""Follow a journal across rolls, takeovers and recoveries."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from journal_manager.edits.ops import EditRun, Op
from journal_manager.journals.backend import JournalReader
from journal_manager.read.edit_reader import read_runs
from journal_manager.txid import TxId


async def tail(
    reader: JournalReader,
    start: TxId,
    *,
    in_progress: bool = True,
    poll_s: float = 1.0,
    stop: asyncio.Event | None = None,
    epoch: int | None = None,
) -> AsyncGenerator[Op, None]:
    """The durable edits from ``start`` on, in order, each once. It ends after ``stop`` is set.

    ``in_progress=False`` waits for segments to be final. ``poll_s`` bounds how long a change can stay unnoticed if the
    store does not report changes. ``epoch`` is that of the edit before ``start`` if the caller goes on from there.

    Raises (while iterating):
        EditsDiscardedError: edits that were delivered were discarded.
        JournalGapError: an edit was purged before it was read. JournalUnavailableError: the store does not answer.
    """
    runs = tail_runs(reader, start, in_progress=in_progress, poll_s=poll_s, stop=stop, epoch=epoch)
    async with aclosing(runs):
        async for run in runs:
            for op in run:
                yield op
                if stop is not None and stop.is_set():
                    return


async def tail_runs(
    reader: JournalReader,
    start: TxId,
    *,
    in_progress: bool = True,
    poll_s: float = 1.0,
    stop: asyncio.Event | None = None,
    epoch: int | None = None,
) -> AsyncGenerator[EditRun, None]:
    """The same edits as :func:`tail` gives, in lists of edits that follow each other, with their epoch."""
    wanted = start
    while stop is None or not stop.is_set():
        progress = False
        async with aclosing(read_runs(reader, wanted, in_progress=in_progress, epoch=epoch)) as runs:
            async for run in runs:
                wanted, epoch, progress = TxId(run[-1].txid + 1), run.epoch, True
                yield run
                if stop is not None and stop.is_set():
                    return
        if not progress:
            await reader.changed(poll_s)
