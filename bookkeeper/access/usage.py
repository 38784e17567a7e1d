"""How much tenants and owners of ledgers have now, as it was counted last."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bookkeeper.errors import MetadataFormatError

FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class Amount:
    """What somebody has."""

    bytes_kept: int = 0
    """Bytes of entries, each copy counted."""
    ledgers: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.bytes_kept + other.bytes_kept, self.ledgers + other.ledgers)


NOTHING: Final = Amount()


@dataclass(frozen=True, slots=True)
class Usage:
    """What everybody had when it was counted."""

    counted_ms: int = 0
    """When the count began, in milliseconds since 1970; 0: it was never counted."""
    tenants: Mapping[str, Amount] = field(default_factory=dict)
    owners: Mapping[str, Amount] = field(default_factory=dict)
    """By the names of owners of ledgers."""

    def encode(self) -> bytes:
        """The bytes that are stored."""
        tables = {
            name: {who: [amount.bytes_kept, amount.ledgers] for who, amount in sorted(table.items())}
            for name, table in (("tenants", self.tenants), ("owners", self.owners))
        }
        return json.dumps({"format": FORMAT, "counted_ms": self.counted_ms, **tables}, ensure_ascii=False).encode()

    @classmethod
    def decode(cls, data: bytes) -> Usage:
        """Read what :meth:`encode` wrote. Raises: MetadataFormatError."""
        try:
            body = json.loads(data)
            if body["format"] != FORMAT:
                raise ValueError(f"it has format {body['format']}, and this version knows {FORMAT}")
            return cls(int(body["counted_ms"]), _amounts(body["tenants"]), _amounts(body["owners"]))
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
            raise MetadataFormatError(f"the record of what tenants have cannot be read: {error}") from error


def _amounts(table: Any) -> dict[str, Amount]:
    return {who: Amount(int(kept), int(ledgers)) for who, (kept, ledgers) in table.items()}
