"""A writer that chooses the entry ids, gives them out of order, and does not know what became of some of them.

It repeats what was withdrawn, and what may have been sent, with other bytes, as an application does that builds its
entry anew after a time-out. Each id is told to the history with the bytes that were taken for it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bookkeeper.client.write.advanced_handle import AdvancedHandle
from bookkeeper.errors import BookKeeperError, DuplicateEntryError
from tests.simulation.watch.history import EventKind

if TYPE_CHECKING:
    from tests.simulation.users.actors import AppendingWriter, WriterOf


class AdvancedBursts:
    """The bursts of one handle; ``session`` writes down what comes of them."""

    def __init__(self, writer: AppendingWriter, session: WriterOf, handle: AdvancedHandle) -> None:
        self.rng, self.monitor = writer.rng, writer.cluster.monitor
        self.session, self.handle = session, handle
        self.next_id = 0

    async def burst(self) -> None:
        """Some consecutive ids in any order, each with a caller of its own, of whom some lose their patience."""
        count = self.rng.randint(1, 12)
        ids = list(range(self.next_id, self.next_id + count))
        self.next_id += count
        self.rng.shuffle(ids)
        callers = [asyncio.ensure_future(self._append(entry_id)) for entry_id in ids]
        try:
            await asyncio.gather(*callers)
        finally:
            for caller in callers:
                caller.cancel()
            await asyncio.gather(*callers, return_exceptions=True)

    async def _append(self, entry_id: int) -> None:
        """Append with little patience; then again with other bytes, which is refused if the first may have been
        sent."""
        session = self.session
        while True:
            payload = session.told(entry_id, self.rng.choice([20, 100, 600]))
            appended = asyncio.ensure_future(self.handle.append_at(entry_id, payload))
            patience_s = self.rng.choice([0.0, 0.0005, 0.01, 60.0])
            try:
                async with asyncio.timeout(patience_s):
                    await appended
            except TimeoutError:
                self.monitor.count("entries given again with other bytes")
                continue
            except DuplicateEntryError:  # the one before was taken: its outcome is what the ledger says
                self.monitor.count("other bytes that were refused")
                return
            except BookKeeperError:
                session.cluster.history.add(EventKind.FAILED, session.process, self.handle.id)
                raise
            session.note_acks([payload], [entry_id])
            return
