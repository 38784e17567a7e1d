"""Where a gateway runs, so that another gateway on the same machine can tell whether it is dead.

Only the kernel that ran a process can tell that the process is dead, and only in the same process namespace. Only the
process that has bound an address knows that nobody else listens there, and only in the same network namespace. About
all other gateways nothing is known, and :class:`OwnLocation` answers False.
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
        """Read the fields. Raises TypeError, ValueError or KeyError if they do not say where a gateway runs."""
        words = [fields[name] for name in ("boot", "namespace", "network", "listen")]
        pid, started = fields["pid"], fields["started"]
        if not all(isinstance(word, str) for word in words) or not 0 < pid < 1 << 31:
            raise ValueError(f"these fields do not say where a gateway runs: {fields!r}")
        return cls(ProcessIdentity(words[0], words[1], int(pid), int(started)), words[2], words[3])


@dataclass(frozen=True, slots=True)
class OwnLocation:
    """Where this process runs, and what it can therefore know about others."""

    place: ProcessLocation | None = None
    """None if this process can know nothing about others, nor others about it."""
    died: Callable[[ProcessLocation], bool] = lambda _: False
    """Asks the kernel whether a process is dead. Only for a process of the same kernel."""

    def knows_dead(self, other: ProcessLocation | None) -> bool:
        """Whether that process has certainly ended, so that it will never answer again.

        A location of another boot proves nothing, because it may be on another machine.
        """
        if self.place is None or other is None:
            return False
        ours, theirs = self.place.process, other.process
        return (ours.boot, ours.namespace) == (theirs.boot, theirs.namespace) and self.died(other)

    def has_address_of(self, other: ProcessLocation | None) -> bool:
        """Whether this process listens where the other one did. The other one has then most likely ended."""
        if self.place is None or other is None:
            return False
        ours = (self.place.process.boot, self.place.network, self.place.listen)
        return ours == (other.process.boot, other.network, other.listen)


NOWHERE = OwnLocation()
"""The location of a process that can know nothing: in a simulation, or on a system without /proc."""


def own_location(listen: str) -> OwnLocation:
    """The location of this process, which has bound ``listen``."""
    try:
        process, network = this_process(), os.readlink("/proc/self/ns/net")
    except OSError:
        return NOWHERE
    return OwnLocation(ProcessLocation(process, network, listen), lambda other: is_dead(other.process, process))
