"""What a gateway notes in its audit log: who was let in or refused, denials, deletions and changes (X16).

A request shows its credentials each time, so who was let in is noted once an hour for each name and address.
"""

from __future__ import annotations

from typing import Final

from bookkeeper.audit import NO_AUDIT, AuditAction, AuditEvent, AuditLog
from bookkeeper.seams import Clock

AGAIN_S: Final = 3600.0
"""Seconds after which it is noted again that somebody was let in."""

KNOWN_MAX: Final = 10_000
"""How many (name, address) are remembered as noted; beyond that the oldest is forgotten."""


class GatewayAudit:
    """Makes the lines of one gateway."""

    def __init__(self, clock: Clock, log: AuditLog = NO_AUDIT, name: str = "") -> None:
        """``name`` of the gateway stands in each line as what the request came through."""
        self.log = log
        self._name = name
        self._clock = clock
        self._is_on = log is not NO_AUDIT
        self._known: dict[tuple[str, str], float] = {}
        """When it was noted that a name was let in from an address."""

    def admitted(self, who: str, host: str) -> None:
        """A request has shown good credentials. ``host`` is where it comes from, without a port."""
        if not self._is_on:
            return
        now = self._clock.monotonic()
        noted = self._known.get((who, host))
        if noted is not None and now - noted < AGAIN_S:
            return
        self._known.pop((who, host), None)
        while len(self._known) >= KNOWN_MAX:
            del self._known[next(iter(self._known))]
        self._known[who, host] = now
        self.note(AuditAction.AUTHENTICATE, who, host, "gateway", allowed=True)

    def refused(self, host: str, reason: str, claimed: str = "") -> None:
        """A request has shown no good credentials. ``claimed`` is the name in them, if one can be told."""
        self.note(
            AuditAction.AUTHENTICATE, claimed, host, "gateway", allowed=False, reason=reason, claimed=bool(claimed)
        )

    def note(
        self,
        what: AuditAction,
        who: str,
        host: str,
        on: str,
        *,
        allowed: bool,
        reason: str = "",
        claimed: bool = False,
    ) -> None:
        """Any other line. ``claimed``: ``who`` is not proven, as where a gateway asks nobody."""
        if self._is_on:
            self.log.note(
                AuditEvent(
                    what=what,
                    who=who,
                    claimed=claimed,
                    through=self._name,
                    address=host,
                    on=on,
                    allowed=allowed,
                    reason=reason,
                )
            )

    def close(self) -> None:
        """Write what is noted, and end. Idempotent."""
        self.log.close()
