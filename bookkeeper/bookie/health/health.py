"""How a bookie is: what /healthz, /livez and /readyz say of it. Pure.

* **live**: the process is of use, and would not be of more use if it were started again. Only a failed disk, or a stop
  that is under way, says otherwise. The metadata service being away does not: a bookie serves its open ledgers without
  it (Z12), and starting it again while the service is away would end that.
* **ready**: clients find this bookie. It serves, and its registration stands, as far as is known.
* **health** is for people and keeps the code of *live*: everything that is known, in numbers and in sentences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

OK: Final = "ok"
UNREGISTERED: Final = "unregistered"


@dataclass(frozen=True, slots=True, kw_only=True)
class BookieHealth:
    """What is known of a bookie at one moment."""

    bookie_id: str
    boot: int
    running: bool
    """Started, and not stopping."""
    disk: str
    """Of the storage engine: writable, read-only, failed, closed."""
    failed: bool
    """The disk is of no use any more."""
    read_only: bool
    """New entries are not taken, by order or for the disk's sake."""
    registered: bool
    """Its registration stands, as far as is known."""
    metadata: str
    """Of the session with the metadata service: connected, suspended, lost."""
    without_metadata_s: float | None
    """Seconds since the contact with it was lost; None while it stands."""
    limbo: str | None = None
    """Why acknowledged data may have been lost; None outside of limbo."""
    ledgers_lost_before: int = 0
    garbage_age_s: float | None = None
    nothing_is_collected: str | None = None
    """Why deleted ledgers are not collected."""
    kept_though_unknown: int = 0
    """Ledgers that metadata do not know, kept for a time after an accepted loss."""
    doing: tuple[str, ...] = ()
    """What residents say of themselves: what they are doing, and why they are not."""

    @property
    def problem(self) -> str:
        """Why the process is of no use; ``ok`` if it is."""
        return "failed" if self.failed else OK if self.running else "stopping"

    @property
    def state(self) -> str:
        """What the cluster may take this bookie for."""
        if self.problem != OK:
            return self.problem
        if not self.registered:
            return UNREGISTERED
        return "read-only" if self.read_only else self.disk

    def sentences(self) -> list[str]:
        """What is not as it should be, and what is done about it."""
        said = []
        if self.without_metadata_s is not None:
            said.append(
                f"there is no contact with the metadata service for {self.without_metadata_s:.0f} s: open ledgers are "
                "served, but nobody who creates a ledger or looks for this bookie anew finds it; it registers again by "
                "itself when the service is back"
            )
        elif self.problem == OK and not self.registered:
            said.append("it is not registered: it tries again all the time, the log says what keeps it from it")
        if self.limbo is not None:
            said.append(f"it may have lost acknowledged data: {self.limbo}")
        if self.nothing_is_collected is not None:
            said.append(f"deleted ledgers are not collected: {self.nothing_is_collected}")
        if self.kept_though_unknown:
            said.append(f"it keeps {self.kept_though_unknown} ledgers that metadata do not know, for a time")
        return [*said, *self.doing]


def liveness(condition: BookieHealth) -> dict[str, Any]:
    """What /livez shows."""
    return {"status": condition.problem}


def readiness(condition: BookieHealth) -> dict[str, Any]:
    """What /readyz shows."""
    status = UNREGISTERED if condition.problem == OK and not condition.registered else condition.problem
    return {
        "status": status,
        "read_only": condition.read_only,
        "registered": condition.registered,
        "metadata": condition.metadata,
    }


def health(condition: BookieHealth) -> dict[str, Any]:
    """What /healthz shows."""
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
        "ledgers_lost_before": condition.ledgers_lost_before,
        "seconds_since_garbage_pass": None if age is None else round(age, 1),
        "nothing_is_collected": condition.nothing_is_collected,
        "kept_though_unknown": condition.kept_though_unknown,
        "sentences": condition.sentences(),
    }
