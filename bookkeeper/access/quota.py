"""How much somebody may have and do: limits, and what is said at a limit."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from bookkeeper.access.principal import Subject
from bookkeeper.errors import ConfigError


class QuotaKind(StrEnum):
    """What a quota limits."""

    BYTES_KEPT = "bytes_kept"
    """Bytes of entries in ledgers that exist, each copy counted."""
    LEDGERS = "ledgers"
    """Ledgers that exist."""
    STREAMS = "streams"
    """Streams that exist among what a tenant owns. Nobody knows of a stream which principal has made it."""
    ADDS_PER_S = "adds_per_s"
    """Entries a second, on each server."""
    BYTES_PER_S = "bytes_per_s"
    """Bytes of entries a second, on each server."""


RATES: Final = frozenset({QuotaKind.ADDS_PER_S, QuotaKind.BYTES_PER_S})
LIMIT_MAX: Final = 2**60
"""The greatest limit; whoever needs more needs none."""


@dataclass(frozen=True, slots=True)
class Quota:
    """Limits. None: there is none."""

    bytes_kept: int | None = None
    ledgers: int | None = None
    adds_per_s: int | None = None
    bytes_per_s: int | None = None
    streams: int | None = None

    def limit(self, kind: QuotaKind) -> int | None:
        """The limit of a kind."""
        found: int | None = getattr(self, kind.value)
        return found

    def within(self, other: Quota) -> Quota:
        """The smaller limit of each kind."""
        return Quota(**{kind.value: _smaller(self.limit(kind), other.limit(kind)) for kind in QuotaKind})

    def document(self) -> dict[str, int]:
        """The limits there are, as they are stored and shown."""
        return {kind.value: limit for kind in QuotaKind if (limit := self.limit(kind)) is not None}

    def __str__(self) -> str:
        return ", ".join(f"{kind} {limit}" for kind, limit in self.document().items()) or "no limits"

    @classmethod
    def of(cls, document: Any) -> Quota:
        """Read what :meth:`document` gave.

        Raises:
            ConfigError: a limit is unknown, or no whole number from 0 on; a rate of 0 would stop everything for ever.
        """
        if not isinstance(document, dict):
            raise ConfigError(f"a quota is a table of limits, not {document!r:.60}")
        known = [kind.value for kind in QuotaKind]
        for name, limit in document.items():
            if name not in known:
                raise ConfigError(f'"{name}" is no quota; the quotas are {", ".join(known)}')
            least = 1 if QuotaKind(name) in RATES else 0
            if type(limit) is not int or not least <= limit <= LIMIT_MAX:
                raise ConfigError(f"the quota {name} is a whole number from {least} to {LIMIT_MAX}, not {limit!r:.60}")
        return cls(**document)


NO_QUOTA: Final = Quota()


def smallest(quotas: Iterable[Quota]) -> Quota:
    """The smallest limit of each kind among these."""
    found = NO_QUOTA
    for each in quotas:
        found = found.within(each)
    return found


def _smaller(one: int | None, two: int | None) -> int | None:
    return min((limit for limit in (one, two) if limit is not None), default=None)


@dataclass(frozen=True, slots=True)
class PrincipalQuota:
    """A quota that each principal has whom ``who`` means, for himself: with ``anyone`` every one."""

    who: Subject
    quota: Quota

    def __post_init__(self) -> None:
        if self.quota.streams is not None:
            raise ConfigError(
                f"the quota {QuotaKind.STREAMS} is a tenant's, because streams belong to tenants: "
                f"bk access tenant set TENANT --quota {QuotaKind.STREAMS}={self.quota.streams}"
            )


@dataclass(frozen=True, slots=True)
class QuotaRefusal:
    """An add, or the making of a ledger, that a quota does not allow now. Nothing of it was counted."""

    whose: str
    """``tenant NAME`` or ``principal NAME``."""
    quota: QuotaKind
    limit: int
    after_s: float | None
    """Seconds until the same request is admitted, if nobody else takes what becomes free. None: not by waiting;
    something must be deleted, or the quota be raised."""

    def __str__(self) -> str:
        if self.after_s is not None:
            come_back = f"come back in {math.ceil(self.after_s * 1000)} ms"
        else:
            come_back = (
                "delete something, or have the quota raised; `bk access usage` shows what counts, and until when"
            )
        return f"the quota {self.quota} of {self.whose}, {self.limit}, is used up: {come_back}"
