"""Where a gateway runs: what another one on the same machine can judge it by.

Only the kernel that ran a process can tell that it is dead, and only where it counts processes itself; only who has
bound an address knows that nobody else listens there, and only in the network in which it is bound. Of everybody else
nothing is known: :class:`OwnLocation` then says no.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from bookkeeper.meta.stores.process_identity import ProcessIdentity, is_dead, this_process


@dataclass(frozen=True, slots=True)
class ProcessLocation:
    """One process, once, and the address at which it listens."""

    process: ProcessIdentity
    network: str
    """In which addresses are bound: the kernel's name for it."""
    listen: str
    """As it was bound, with its real port."""

    def fields(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self.process), "network": self.network, "listen": self.listen}

    @classmethod
    def of(cls, fields: dict[str, Any]) -> ProcessLocation:
        """Raises TypeError, ValueError, KeyError: these are not the fields of a place."""
        words = [fields[name] for name in ("boot", "namespace", "network", "listen")]
        pid, started = fields["pid"], fields["started"]
        if not all(isinstance(word, str) for word in words) or not 0 < pid < 1 << 31:
            raise ValueError(f"not where a gateway runs: {fields!r}")
        return cls(ProcessIdentity(words[0], words[1], int(pid), int(started)), words[2], words[3])


@dataclass(frozen=True, slots=True)
class OwnLocation:
    """Our own place, and what it lets us know of others."""

    place: ProcessLocation | None = None
    """None: nothing can be known, by us or of us."""
    died: Callable[[ProcessLocation], bool] = lambda _: False
    """Asks the kernel; only for a process that it would know."""

    def knows_dead(self, other: ProcessLocation | None) -> bool:
        """Whether that process certainly does not run any more, and so will never answer anything again.

        Another boot of what may be the same machine proves nothing: the lease's place may be on another machine.
        """
        if self.place is None or other is None:
            return False
        ours, theirs = self.place.process, other.process
        return (ours.boot, ours.namespace) == (theirs.boot, theirs.namespace) and self.died(other)

    def has_address_of(self, other: ProcessLocation | None) -> bool:
        """Whether we listen where it listened: it has stopped accepting, and most likely is dead."""
        if self.place is None or other is None:
            return False
        ours = (self.place.process.boot, self.place.network, self.place.listen)
        return ours == (other.process.boot, other.network, other.listen)


NOWHERE = OwnLocation()
"""Of one who can tell nothing: in a simulated world, or where there is no /proc."""


def this_place(listen: str) -> OwnLocation:
    """This process, which has bound ``listen``."""
    try:
        process, network = this_process(), os.readlink("/proc/self/ns/net")
    except OSError:
        return NOWHERE
    return OwnLocation(ProcessLocation(process, network, listen), lambda other: is_dead(other.process, process))
