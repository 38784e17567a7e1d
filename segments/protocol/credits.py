"""How much may still be sent to a reader: credits in records and bytes. Pure.

The reader gives credits, and each record takes one credit of records and as many of bytes as its value and key have.
Something may be sent while both balances are above 0. So one record larger than all byte credits passes, and its bytes
are owed: a reader that gives small credits never waits for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bookkeeper.amounts import counted

CREDITS_MAX: Final = 1 << 40
"""More credits than this are no use; a reader that gives them has as many as this."""


@dataclass(slots=True)
class CreditBalance:
    """The credits of one reader."""

    records: int = 0
    bytes: int = 0

    def grant(self, records: int, size: int) -> None:
        """Add credits.

        Raises:
            ValueError: a number is negative.
        """
        if records < 0 or size < 0:
            raise ValueError(f"credits are added, never taken back: got {counted(records, 'record')} and {size} bytes")
        self.records = min(self.records + records, CREDITS_MAX)
        self.bytes = min(self.bytes + size, CREDITS_MAX)

    @property
    def may_send(self) -> bool:
        """Whether the next record may be sent, whatever its size."""
        return self.records > 0 and self.bytes > 0

    def spend(self, records: int, size: int) -> None:
        """Note what was sent, all of it: more than there were credits for is owed, and nothing is sent before that was
        given."""
        self.records -= records
        self.bytes -= size


@dataclass(slots=True)
class SendWindow:
    """What a writer may have unanswered at a time, as the gateway says; and what is unanswered."""

    records_max: int
    bytes_max: int
    records: int = 0
    bytes: int = 0

    def resize(self, records_max: int, bytes_max: int) -> None:
        """Use other limits. What is unanswered stays so, also above them."""
        self.records_max, self.bytes_max = max(records_max, 1), max(bytes_max, 1)

    def has_room(self, records: int, size: int) -> bool:
        """Whether a batch may be sent now. A batch larger than the window passes alone."""
        if self.records == 0:
            return True
        return self.records + records <= self.records_max and self.bytes + size <= self.bytes_max

    def sent(self, records: int, size: int) -> None:
        """Note a batch that was sent."""
        self.records += records
        self.bytes += size

    def answered(self, records: int, size: int) -> None:
        """Note the answer to a batch."""
        self.records -= records
        self.bytes -= size
