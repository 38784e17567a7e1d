"""A tenant's program: it writes ledger after ledger, and reads back what is its own."""

from __future__ import annotations

import asyncio
from typing import Final

from bookkeeper import BookKeeper, WriteHandle
from bookkeeper.access import Resource
from bookkeeper.access.ownership import owner_tag
from bookkeeper.errors import BookKeeperError, in_words

PASSWORD: Final = b"known to everybody who reads the metadata"
PER_LEDGER: Final = 100


class TenantProgram:
    """Writes a few entries a second, as its tenant's principal."""

    def __init__(self, client: BookKeeper, tenant: str, pace: float) -> None:
        """``pace``: entries a second."""
        self.client = client
        self.tenant = tenant
        self.owner: Final = Resource.parse(f"ledgers:{tenant}")
        self.written: dict[int, list[bytes]] = {}
        """The acknowledged payloads of each ledger, in order."""
        self.open: int | None = None
        """The ledger that is written now."""
        self.ended = ""
        """Why it could not go on; empty: it goes on."""
        self._pace = pace
        self._stopped = False

    @property
    def acknowledged(self) -> int:
        """Entries, in all ledgers."""
        return sum(map(len, self.written.values()))

    def stop(self) -> None:
        """Close the present ledger, and begin no other."""
        self._stopped = True

    async def ledger(self) -> WriteHandle:
        """A new ledger that is the tenant's."""
        made = await self.client.create_ledger(password=PASSWORD, custom_metadata=owner_tag(self.owner))
        self.written[made.id] = []
        return made

    async def run(self) -> None:
        """Write until stopped. What ends it stands in ``ended``."""
        try:
            while not self._stopped:
                async with await self.ledger() as ledger:
                    self.open = ledger.id
                    while not self._stopped and len(self.written[ledger.id]) < PER_LEDGER:
                        payload = b"%s %d" % (self.tenant.encode(), ledger.last_add_confirmed + 1)
                        await ledger.append(payload)
                        self.written[ledger.id].append(payload)
                        await asyncio.sleep(1 / self._pace)
                self.open = None
        except BookKeeperError as error:
            self.ended = in_words(error)

    async def read_back(self) -> list[str]:
        """Read everything that was acknowledged. Returns a sentence for each ledger that is not as it was written."""
        wrong = []
        for ledger_id, payloads in self.written.items():
            try:
                async with await self.client.open_ledger(ledger_id, PASSWORD) as reader:
                    found = (
                        [entry.payload async for entry in reader.read(0, reader.last_add_confirmed)] if payloads else []
                    )
            except BookKeeperError as error:
                wrong.append(f"ledger {ledger_id} of {self.tenant} cannot be read: {in_words(error)}")
                continue
            if found[: len(payloads)] != payloads:
                wrong.append(f"ledger {ledger_id} of {self.tenant} has other entries than were written")
            elif any(not payload.startswith(self.tenant.encode()) for payload in found):
                wrong.append(f"ledger {ledger_id} of {self.tenant} has an entry that somebody else wrote")
        return wrong
