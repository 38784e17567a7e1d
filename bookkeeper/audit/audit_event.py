"""One event of the audit log, and its line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from bookkeeper.ids import Address, counted_address

NAME_MAX: Final = 256
"""Characters of a name or an address in a line; what is longer is cut, and the line says so."""

TEXT_MAX: Final = 512
"""Characters of a resource or a reason in a line."""


class AuditAction(StrEnum):
    """What was done, or was to be done."""

    AUTHENTICATE = "authenticate"
    """Somebody has shown who he is, or has failed to."""
    DENY = "deny"
    """Somebody who is known was refused something that no other word here names."""
    FENCE = "fence"
    """A ledger was fenced, as by a recovery."""
    CREATE = "create"
    DELETE = "delete"
    ADMINISTER = "administer"
    """A bookie, a gateway or the cluster was changed."""
    READ_SECRET = "read-secret"
    """A secret was handed out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """What one line tells. It has no place for a payload, a key or a password, nor for a wrong one."""

    what: AuditAction
    who: str
    """The principal; empty if nobody was named."""
    claimed: bool = False
    """``who`` is what was presented, and is not proven."""
    through: str = ""
    """The principal of the gateway that carried the request, where one did; proven."""
    address: str
    """Where the request came from: HOST or HOST:PORT."""
    on: str
    """The ledger, stream, path or bookie that it is about."""
    allowed: bool
    reason: str = ""
    """Why it was refused, or what an operator gave as the reason."""
    request_id: str = ""


def peer_of(event: AuditEvent) -> str:
    """On whose account an event goes: a proven name's, or its address's."""
    if event.who and not event.claimed:
        return f"name {_cut(event.who, NAME_MAX)}"
    return f"address {counted_address(_host(event.address))}"


def event_line(event: AuditEvent, wall_ms: int) -> bytes:
    """The line of an event that happened at ``wall_ms``, in milliseconds since 1970."""
    return _line(
        wall_ms,
        {
            "what": str(event.what),
            "who": _cut(event.who, NAME_MAX),
            "claimed": bool(event.claimed),
            "through": _cut(event.through, NAME_MAX),
            "address": _cut(event.address, NAME_MAX),
            "on": _cut(event.on, TEXT_MAX),
            "allowed": bool(event.allowed),
            "reason": _cut(event.reason, TEXT_MAX),
            "request_id": _cut(event.request_id, NAME_MAX),
        },
    )


def left_out_line(what: str, peer: str, count: int, why: str, wall_ms: int) -> bytes:
    """The line that stands for ``count`` events whose lines were left out."""
    return _line(wall_ms, {"what": "left-out", "of": what, "peer": peer, "count": count, "reason": why})


def _line(wall_ms: int, fields: dict[str, object]) -> bytes:
    when = datetime.fromtimestamp(wall_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return (json.dumps({"when_ms": wall_ms, "when": when, **fields}) + "\n").encode("ascii")


def _cut(text: object, most: int) -> str:
    shown = str(text)
    return shown if len(shown) <= most else f"{shown[:most]}... ({len(shown) - most} more characters)"


def _host(address: str) -> str:
    """The host of HOST, HOST:PORT or [IPV6]:PORT."""
    if address.startswith("[") or address.count(":") == 1:
        try:
            return Address.parse(address).host
        except ValueError:
            pass
    return _cut(address, NAME_MAX)
