"""Where a gateway runs: by this another gateway on the same machine can judge whether it is dead.

Only the kernel that ran a process can tell that the process is dead, and only in the namespace in which it counts
processes. Only whoever has bound an address knows that nobody else listens there, and only in that network namespace.
Of all other gateways nothing is known: :class:`OwnLocation` then says no.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from bookkeeper.meta.stores.process_identity import ProcessIdentity, is_dead, this_process


@dataclass(frozen=True, slots=True)
class ProcessLocation:
    """One gateway process and the address at which it listens."""

    process: ProcessIdentity
    network: str
    """The network namespace of its addresses: the kernel's name for it."""
    listen: str
    """The address as it was bound, with its real port."""

    def fields(self) -> dict[str, Any]:
        """The fields, for JSON."""
        return {**asdict(self.process), "network": self.network, "listen": self.listen}

    @classmethod
    def of(cls, fields: dict[str, Any]) -> ProcessLocation:
        """Read the fields. Raises TypeError, ValueError, KeyError: they do not say where a gateway runs."""
        words = [fields[name] for name in ("boot", "namespace", "network", "listen")]
        pid, started = fields["pid"], fields["started"]
        if not all(isinstance(word, str) for word in words) or not 0 < pid < 1 << 31:
            raise ValueError(f"these fields do not say where a gateway runs: {fields!r}")
        return cls(ProcessIdentity(words[0], words[1], int(pid), int(started)), words[2], words[3])


@dataclass(frozen=True, slots=True)
class OwnLocation:
    """Where this process runs, and what that lets it know of others."""

    place: ProcessLocation | None = None
    """None: nothing can be known, neither by this process nor of it."""
    died: Callable[[ProcessLocation], bool] = lambda _: False
    """Asks the kernel whether a process is dead; only for a process that the kernel would know."""

    def knows_dead(self, other: ProcessLocation | None) -> bool:
        """Whether that process has certainly ended, and so will never answer anything again.

        Another boot of what may be the same machine proves nothing: the lease's place may be on another machine.
        """
        if self.place is None or other is None:
            return False
        ours, theirs = self.place.process, other.process
        return (ours.boot, ours.namespace) == (theirs.boot, theirs.namespace) and self.died(other)

    def has_address_of(self, other: ProcessLocation | None) -> bool:
        """Whether this process listens where the other one did: that one has most likely ended."""
        if self.place is None or other is None:
            return False
        ours = (self.place.process.boot, self.place.network, self.place.listen)
        return ours == (other.process.boot, other.network, other.listen)


NOWHERE = OwnLocation()
"""The location of a process that can tell nothing: in a simulated world, or where there is no /proc."""


def this_place(listen: str) -> OwnLocation:
    """The location of this process, which has bound ``listen``."""
    try:
        process, network = this_process(), os.readlink("/proc/self/ns/net")
    except OSError:
        return NOWHERE
    return OwnLocation(ProcessLocation(process, network, listen), lambda other: is_dead(other.process, process))
