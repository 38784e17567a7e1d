"""The health of a bookie, as /healthz, /livez and /readyz show it. Pure.

* **live**: the process works, and a restart would not help. Only a failed disk, or a stop that has begun, makes it not
  live. A metadata store that is away does not: the bookie serves its open ledgers without it (Z12), and a restart
  while the store is away would end that.
* **ready**: clients find this bookie. It serves, and its registration stands, as far as is known.
* **health** is for people, and has the same HTTP code as *live*: everything that is known, in numbers and sentences.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from bookkeeper.amounts import counted

OK: Final = "ok"
UNREGISTERED: Final = "unregistered"


class PageReply(NamedTuple):
    """The answer of a page that chooses its own status."""

    code: int
    body: dict[str, Any] | list[Any] | str | Iterable[bytes]
    """Sent as JSON; a text as it is; bytes as they come, and the connection ends with them."""
    asks_for_token: bool = False
    """Whether the header says that a token is needed."""
    content_type: str = ""
    """Of a text, or of bytes; empty: a plain text, and JSON."""
    headers: tuple[tuple[str, str], ...] = ()
    """More headers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BookieHealth:
    """The condition of a bookie at one moment."""

    bookie_id: str
    boot: int
    running: bool
    """Started, and not stopping."""
    disk: str
    """State of the storage engine: writable, read-only, failed or closed."""
    failed: bool
    """The disk has failed or is closed."""
    read_only: bool
    """The bookie takes no new entries, by order or because of the disk's state."""
    registered: bool
    """The bookie is registered, as far as is known."""
    metadata: str
    """State of the session with the metadata store: connected, suspended or lost."""
    without_metadata_s: float | None
    """Seconds since contact with the metadata store was lost; None while it stands."""
    limbo: str | None = None
    """Why acknowledged data may have been lost; None if the bookie is not in limbo."""
    ledgers_in_doubt: int = 0
    """How many ledgers may lack entries here, because they are older than the disk."""
    garbage_age_s: float | None = None
    nothing_is_collected: str | None = None
    """Why deleted ledgers are not collected; None if they are."""
    kept_though_unknown: int = 0
    """How many ledgers that metadata do not know are kept for a time after an accepted loss."""
    doing: tuple[str, ...] = ()
    """Sentences about background work: what is being done, and what holds it up."""

    @property
    def problem(self) -> str:
        """What is wrong with the process; ``ok`` if nothing is."""
        return "failed" if self.failed else OK if self.running else "stopping"

    @property
    def state(self) -> str:
        """The bookie's state in the cluster, in one word."""
        if self.problem != OK:
            return self.problem
        if not self.registered:
            return UNREGISTERED
        return "read-only" if self.read_only else self.disk

    def sentences(self) -> list[str]:
        """What is wrong, what it means, and what is done about it: sentences for people."""
        said = []
        if self.without_metadata_s is not None:
            said.append(
                f"the bookie has had no contact with the metadata store for {self.without_metadata_s:.0f} s: it serves "
                "open ledgers, but new ledgers and new clients do not find it; it registers again by itself when the "
                "store is back"
            )
        elif self.problem == OK and not self.registered:
            said.append(
                "the bookie is not registered, so clients do not find it: it keeps trying, and the log says what fails"
            )
        if self.limbo is not None:
            said.append(f"the bookie may have lost acknowledged data: {self.limbo}")
        if self.nothing_is_collected is not None:
            said.append(f"deleted ledgers are not collected: {self.nothing_is_collected}")
        if self.kept_though_unknown:
            kept = counted(self.kept_though_unknown, "ledger", "that is", "that are")
            said.append(f"the bookie keeps {kept} in no metadata, for the time given to bk metadata accept-rollback")
        return [*said, *self.doing]


def liveness(condition: BookieHealth) -> dict[str, Any]:
    """The content of /livez."""
    return {"status": condition.problem}


def readiness(condition: BookieHealth) -> dict[str, Any]:
    """The content of /readyz."""
    status = UNREGISTERED if condition.problem == OK and not condition.registered else condition.problem
    return {
        "status": status,
        "read_only": condition.read_only,
        "registered": condition.registered,
        "metadata": condition.metadata,
    }


def health(condition: BookieHealth) -> dict[str, Any]:
    """The content of /healthz."""
    age, without = condition.garbage_age_s, condition.without_metadata_s
    return {
        "status": condition.problem,
        "bookie_id": condition.bookie_id,
        "boot": condition.boot,
        "state": condition.state,
        "disk": condition.disk,
        "read_only": condition.read_only,
        "registered": condition.registered,
        "metadata": condition.metadata,
        "seconds_without_metadata": None if without is None else round(without, 1),
        "limbo": condition.limbo,
        "ledgers_in_doubt": condition.ledgers_in_doubt,
        "seconds_since_garbage_pass": None if age is None else round(age, 1),
        "nothing_is_collected": condition.nothing_is_collected,
        "kept_though_unknown": condition.kept_though_unknown,
        "sentences": condition.sentences(),
    }
