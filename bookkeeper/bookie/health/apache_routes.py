"""What Apache's bookies answer to probes over HTTP, for those that are of this bookie alone and change nothing. Pure.

Whoever has probes and scripts for Apache BookKeeper keeps them. Statuses and JSON are Apache's. Routes that ask the
cluster, or change something, are answered at an address of their own: :mod:`bookkeeper.http_api`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from bookkeeper.bookie.health.health import OK, BookieHealth, PageReply
from bookkeeper.seams import Space

HEARTBEAT: Final = "/heartbeat"
BOOKIE: Final = "/api/v1/bookie"


class HealthSnapshot(NamedTuple):
    """What the routes show, at one moment."""

    condition: BookieHealth
    space: Space
    compacting: bool
    compactions: int
    suspended: bool


Route = Callable[[HealthSnapshot], PageReply]


def _is_ready(seen: HealthSnapshot) -> PageReply:
    if seen.condition.problem == OK:
        return PageReply(200, "OK")
    return PageReply(503, "Bookie is not fully started yet")


def _state(seen: HealthSnapshot) -> PageReply:
    condition = seen.condition
    return PageReply(
        200,
        {
            "running": condition.running,
            "readOnly": condition.read_only,
            "shuttingDown": not condition.running,
            "availableForHighPriorityWrites": not condition.failed,
        },
    )


def _sanity(seen: HealthSnapshot) -> PageReply:
    """Apache's bookie writes and reads a ledger to answer this; here the state that a write would meet is told."""
    condition = seen.condition
    return PageReply(200, {"passed": condition.problem == OK and condition.registered, "readOnly": condition.read_only})


def _gc_details(seen: HealthSnapshot) -> PageReply:
    return PageReply(
        200,
        [
            {
                "forceCompacting": False,
                "majorCompacting": seen.compacting,
                "minorCompacting": False,
                "lastMajorCompactionTime": 0,
                "lastMinorCompactionTime": 0,
                "lastEntryLocationCompactionTime": 0,
                "majorCompactionCounter": seen.compactions,
                "minorCompactionCounter": 0,
                "entryLocationCompactionCounter": 0,
            }
        ],
    )


ROUTES: Final[Mapping[str, Route]] = {
    HEARTBEAT: lambda _: PageReply(200, "OK\n"),
    f"{BOOKIE}/is_ready": _is_ready,
    f"{BOOKIE}/state": _state,
    f"{BOOKIE}/state/readonly": lambda seen: PageReply(200, {"readOnly": seen.condition.read_only}),
    f"{BOOKIE}/sanity": _sanity,
    f"{BOOKIE}/info": lambda seen: PageReply(200, {"freeSpace": seen.space.free, "totalSpace": seen.space.total}),
    f"{BOOKIE}/gc": lambda seen: PageReply(200, {"is_in_force_gc": str(seen.compacting).lower()}),
    f"{BOOKIE}/gc_details": _gc_details,
    f"{BOOKIE}/gc/suspend_compaction": lambda seen: PageReply(
        200, dict.fromkeys(("isMajorGcSuspended", "isMinorGcSuspended"), str(seen.suspended).lower())
    ),
}
"""By path, without a slash at its end; with one it is the same."""
