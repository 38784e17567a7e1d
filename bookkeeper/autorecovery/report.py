"""What one process of autorecovery says of itself, for everybody who may read the metadata.

It is JSON, published beside the cluster's root while the process lives::

    {"name": "host-1:4711", "auditor": true, "auditing": "every bookie is here", "working": ["ledger 7: copies ..."],
     "repaired": 12, "recovered": 1, "copied_entries": 4000, "copied_bytes": 4100000, "waiting": 3,
     "stuck": [{"ledger": 9, "reason": "...", "tries": 2, "since_ms": 1700000000000}], "updated_ms": 1700000000500}
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from bookkeeper.errors import MetadataFormatError

STUCK_MAX: Final = 100
"""Ledgers with reasons that one report holds at most; it says how many there are."""


@dataclass(frozen=True, slots=True)
class StuckRepair:
    """One ledger that could not be repaired so far."""

    ledger: int
    reason: str
    tries: int
    since_ms: int
    """When it first failed, in milliseconds since 1970."""


@dataclass(frozen=True, slots=True)
class AutorecoveryReport:
    """A process's auditor and worker."""

    name: str
    auditor: bool = False
    auditing: str = ""
    """What the auditor does, or why it does nothing: a sentence for people."""
    working: tuple[str, ...] = ()
    """What is repaired now: a few words for each ledger."""
    repaired: int = 0
    """Ledgers that were made whole since the process began."""
    recovered: int = 0
    """Ledgers among them that were not closed, and were recovered."""
    copied_entries: int = 0
    copied_bytes: int = 0
    waiting: int = 0
    """Marked ledgers that are not being repaired now."""
    stuck: tuple[StuckRepair, ...] = field(default=())
    stuck_count: int = 0
    """How many ledgers are stuck, also those that are not in ``stuck``."""
    updated_ms: int = 0
    """When this was written, in milliseconds since 1970."""

    def encode(self) -> bytes:
        """The bytes that are published."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, data: bytes) -> AutorecoveryReport:
        """The reverse; fields of a later version are left out. Raises: MetadataFormatError."""
        try:
            found: dict[str, Any] = json.loads(data)
            known = {name: value for name, value in found.items() if name in cls.__dataclass_fields__}
            stuck = tuple(
                StuckRepair(int(each["ledger"]), str(each["reason"]), int(each["tries"]), int(each["since_ms"]))
                for each in known.pop("stuck", ())
            )
            working = tuple(map(str, known.pop("working", ())))
            return cls(**known, stuck=stuck, working=working)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
            raise MetadataFormatError(f"the report of an autorecovery process cannot be read: {error}") from error
