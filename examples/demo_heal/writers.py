"""Writers that write ledger after ledger, and remember every entry that was acknowledged."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final

from bookkeeper import BookKeeper
from bookkeeper.client.write.write_handle import WriteHandle
from bookkeeper.errors import BookKeeperError, PartialAppendError, in_words
from bookkeeper.launchers.machine_speed import stretch

PASSWORD: Final = b"heal"
_BATCH: Final = 5
_BASE: Final = bytes(range(256)) * 160
_RETRY_S: Final = 0.5
_CLOSE_S: Final = 15.0


@dataclass(slots=True)
class WrittenLedger:
    """What is known of one ledger."""

    size: int
    """Bytes of each of its entries."""
    acknowledged: set[int] = field(default_factory=set)
    """The ids of the entries that were acknowledged."""
    closed: bool = False


def payload(ledger: int, entry: int, size: int) -> bytes:
    """The bytes of an entry. They tell entries apart, so that a wrong one is noticed."""
    head = b"%d/%d " % (ledger, entry)
    return (head + _BASE[entry % 256 : entry % 256 + size])[:size]


class LedgerWriters:
    """Some writers at once, from :meth:`start` to :meth:`stop`."""

    def __init__(self, client: BookKeeper, *, count: int, per_ledger: int) -> None:
        self._client = client
        self._count = count
        self._per_ledger = per_ledger
        self._stopping = False
        self._tasks: list[asyncio.Task[None]] = []
        self.size = 8192
        """Bytes of each entry of ledgers that are begun from now on."""
        self.pace = 15.0
        """Entries a second of each writer."""
        self.ledgers: dict[int, WrittenLedger] = {}
        self.ended = 0
        """Ledgers whose writers were ended by an error, and went on with another ledger."""
        self.last_error = ""

    @property
    def acknowledged(self) -> int:
        """How many entries were acknowledged, in the ledgers that are remembered."""
        return sum(len(ledger.acknowledged) for ledger in self.ledgers.values())

    def closed(self) -> list[int]:
        """The ledgers that were closed, the oldest first."""
        return [ledger_id for ledger_id, ledger in self.ledgers.items() if ledger.closed]

    def forget(self, ledger_id: int) -> None:
        """A ledger was deleted: nothing is expected of it any more."""
        del self.ledgers[ledger_id]

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._write(), name=f"writer {number}") for number in range(self._count)]

    async def stop(self) -> None:
        """Let every writer close its ledger and end. What a writer could not close is closed by a recovery."""
        self._stopping = True
        await asyncio.gather(*self._tasks)
        for ledger_id, ledger in self.ledgers.items():
            if not ledger.closed:
                await self._recover(ledger_id, ledger)

    async def _recover(self, ledger_id: int, ledger: WrittenLedger) -> None:
        try:
            async with asyncio.timeout(_CLOSE_S * stretch()):
                await (await self._client.open_ledger(ledger_id, PASSWORD)).close()
            ledger.closed = True
        except (BookKeeperError, TimeoutError) as error:
            self.last_error = in_words(error)

    async def _write(self) -> None:
        while not self._stopping:
            try:
                handle = await self._client.create_ledger(
                    ensemble=3, write_quorum=3, ack_quorum=2, password=PASSWORD, digest="crc32c"
                )
            except BookKeeperError as error:
                self.last_error = in_words(error)
                await asyncio.sleep(_RETRY_S)
                continue
            ledger = self.ledgers[handle.id] = WrittenLedger(self.size)
            try:
                await self._fill(handle, ledger)
                await handle.close()
                ledger.closed = True
            except BookKeeperError as error:
                self.ended += 1
                self.last_error = in_words(error)
                await self._recover(handle.id, ledger)

    async def _fill(self, handle: WriteHandle, ledger: WrittenLedger) -> None:
        loop = asyncio.get_running_loop()
        for first in range(0, self._per_ledger, _BATCH):
            if self._stopping:
                return
            began = loop.time()
            batch = [payload(handle.id, entry, ledger.size) for entry in range(first, first + _BATCH)]
            try:
                ledger.acknowledged.update(await handle.append_many(batch))
            except PartialAppendError as error:
                ledger.acknowledged.update(error.confirmed)
                raise
            await asyncio.sleep(max(0.0, began + _BATCH / self.pace * stretch() - loop.time()))
