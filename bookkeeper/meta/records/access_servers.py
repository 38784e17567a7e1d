"""What each server does with the access policy, while it is up.

    <root>-py/access/servers/<kind and name>    ephemeral, JSON (ours alone)

A bookie without such a value does not know the policy: it is Java's, or of an earlier version.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from bookkeeper.access import Mode
from bookkeeper.access.observation import ObservedDenial
from bookkeeper.errors import MetadataFormatError
from bookkeeper.ids import BookieId
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store import MetadataStore, ensure_deleted, get_or_none, names_below, put

BOOKIE: Final = "bookie"
"""The kind of a server that is a bookie; its name is the bookie's id."""


@dataclass(frozen=True, slots=True)
class AccessReport:
    """One server's report."""

    kind: str
    """``bookie``, ``webhdfs gateway``, ``gateway of streams`` ..."""
    name: str
    mode: Mode
    """What it does now."""
    state: str
    """What its copy of the policy is worth (:class:`bookkeeper.meta.policy_follower.PolicyState`)."""
    changed_ms: int
    """When the policy that it has was changed last, by that change's note; 0: there is no policy, or no note."""
    denials: tuple[ObservedDenial, ...] = field(default=())
    """What it has denied, or in the mode ``observe`` would have denied, since the policy changed."""
    other_denials: int = 0

    def encode(self) -> bytes:
        """The bytes that are stored."""
        denials = [[each.who, each.what, each.on, each.count] for each in self.denials]
        return json.dumps(
            {
                "kind": self.kind,
                "name": self.name,
                "mode": self.mode.value,
                "state": self.state,
                "changed_ms": self.changed_ms,
                "denials": denials,
                "other_denials": self.other_denials,
            },
            ensure_ascii=False,
        ).encode()

    @classmethod
    def decode(cls, data: bytes) -> AccessReport:
        """Read a report; fields of later versions are passed over. Raises: MetadataFormatError."""
        try:
            body: dict[str, Any] = json.loads(data)
            return cls(
                str(body["kind"]),
                str(body["name"]),
                Mode(body["mode"]),
                str(body["state"]),
                int(body["changed_ms"]),
                tuple(ObservedDenial(str(who), str(what), str(on), int(n)) for who, what, on, n in body["denials"]),
                int(body["other_denials"]),
            )
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
            raise MetadataFormatError(f"a server's report of access cannot be read: {error}") from error


class AccessServers:
    """The reports of one cluster. Methods raise MetadataError."""

    def __init__(self, store: MetadataStore, paths: Paths) -> None:
        self._store = store
        self._parent = paths.own("access", "servers")

    def path(self, kind: str, name: str) -> str:
        """The path of a server's report."""
        return f"{self._parent}/{quote(f'{kind} {name}', safe='')}"

    async def publish(self, report: AccessReport) -> None:
        """Replace a server's report. It ends with the session."""
        await put(self._store, self.path(report.kind, report.name), report.encode(), ephemeral=True)

    async def is_published(self, kind: str, name: str) -> bool:
        """Whether there is a report of this server; one of an earlier session of it may have ended."""
        return await self._store.exists(self.path(kind, name)) is not None

    async def withdraw(self, kind: str, name: str) -> None:
        """Remove a server's report. Idempotent."""
        await ensure_deleted(self._store, self.path(kind, name))

    async def reports(self) -> list[AccessReport]:
        """The reports of all servers that are up, by kind and name; those that cannot be read are left out."""
        found = []
        for part in await names_below(self._store, self._parent, fresh=True):
            value = await get_or_none(self._store, f"{self._parent}/{part}")
            if value is None:
                continue
            try:
                found.append(AccessReport.decode(value.value))
            except MetadataFormatError:
                continue
        return sorted(found, key=lambda each: (each.kind, each.name))

    async def without_report(self, bookies: list[BookieId]) -> list[BookieId]:
        """Those of these bookies that do not say that they follow the policy."""
        reporting = {each.name for each in await self.reports() if each.kind == BOOKIE}
        return [bookie for bookie in bookies if bookie not in reporting]
