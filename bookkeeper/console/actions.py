"""What pages may change: repair a ledger, drain a bookie, make it read-only, purge a deleted ledger.

Whoever asks says twice what is meant: by the button, and by typing it. What takes long goes on in the background.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from bookkeeper.access import CLUSTER, Resource, Right
from bookkeeper.access.ownership import NO_OWNER
from bookkeeper.amounts import counted
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.operators import Operator, require_bookies
from bookkeeper.errors import BookKeeperError, MetadataFormatError
from bookkeeper.http_api.background import BackgroundWork
from bookkeeper.http_api.request import RefusedRequestError
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.meta.records.read_only import ReadOnlyOrders
from bookkeeper.replication.config import DrainConfig
from bookkeeper.replication.decommissioning import drain
from bookkeeper.replication.repairs import repair_once
from bookkeeper.settings import default_of

TARGET_MAX: Final = 300
"""Characters of a target at most."""
_STATED: Final = "; the page Repair shows it while it goes on, and the log of the console says if it does not succeed"


@dataclass(frozen=True, slots=True)
class ActionRequest:
    """What is asked for."""

    action: str
    target: str
    off: bool = False
    """Of read-only: take the order back."""
    caller: str = ""
    """The name in the token."""
    host: str = ""
    """The address that it comes from."""

    @property
    def what(self) -> str:
        """What it asks for, in a line."""
        return f"{self.action}{' off' if self.off else ''} {self.target}"

    @classmethod
    def parse(cls, action: str, body: str | None, caller: str, host: str = "") -> ActionRequest:
        """Read a request's body: an object with ``target``, ``confirm`` (the same again) and ``off``.

        Raises:
            RefusedRequestError: it is none, or the target was not typed again as it is.
        """
        try:
            told = json.loads(body or "")
        except (ValueError, RecursionError):
            told = None
        if not isinstance(told, dict) or not told.keys() <= {"target", "confirm", "off"}:
            raise RefusedRequestError("The body is a JSON object with target, confirm and off", 400)
        target, confirm, off = told.get("target"), told.get("confirm"), told.get("off", "")
        if not isinstance(target, str) or not 0 < len(target) <= TARGET_MAX or off not in ("", "1"):
            raise RefusedRequestError("The body says no target, or off is neither empty nor 1", 400)
        if confirm != target:
            raise RefusedRequestError("Nothing was done: what was typed to confirm is not what would be changed", 400)
        return cls(action, target, off == "1", caller, host)


MayAct = Callable[[ActionRequest, Right, Resource], None]
"""Raises RefusedRequestError if who asks has not this right on a resource."""


class Actions:
    """Carries out actions by a client of the cluster. On the loop."""

    def __init__(self, client: BookKeeper, background: BackgroundWork, name: str, require: MayAct) -> None:
        """
        Args:
            name: of the console, for people who look at locks and orders.
            require: checks that who asks has the right that an action needs besides that to administer.
        """
        self._client, self._background, self._name, self._require = client, background, name, require
        self._works: dict[str, Callable[[ActionRequest], Awaitable[str]]] = {
            "repair": self._repair,
            "drain": self._drain,
            "read-only": self._read_only,
            "purge": self._purge,
        }

    async def carry_out(self, request: ActionRequest) -> str:
        """Do it, or begin it. Returns what was done: a sentence.

        Raises:
            RefusedRequestError: the target is not there, or must not be changed so. Nothing was done.
            BookKeeperError, OSError: it was not done, unless the error says that this is not known.
        """
        return await self._works[request.action](request)

    async def _repair(self, request: ActionRequest) -> str:
        ledger_id = _ledger_id(request.target)
        found = await self._client.metadata(ledger_id)
        self._require(request, Right.REPAIR, await self._owner(ledger_id, found.custom))

        async def work() -> str:
            grace_s = default_of(DrainConfig, "grace_ms") / 1000
            owner = f"{request.caller} by the console {self._name}"
            done = await repair_once(self._client, ledger_id, owner=owner, grace_s=grace_s)
            return "" if done.whole else "; ".join(map(str, done.problems))

        self._background.begin(f"repair of ledger {ledger_id}", request.caller, work)
        return f"Ledger {ledger_id} is being repaired{_STATED}"

    async def _drain(self, request: ActionRequest) -> str:
        self._require(request, Right.REPAIR, CLUSTER)
        bookie = await self._known(request.target)
        if bookie in await Operator(self._client).writable_bookies():
            raise RefusedRequestError(f"Nothing was done: {bookie} is writable; make it read-only first", 409)
        config = DrainConfig(owner=f"{request.caller} by the console {self._name}")

        async def work() -> str:
            report = await drain(self._client, [bookie], config)
            if not report.stuck:
                return ""
            reasons = "; ".join(f"ledger {each.ledger_id}: {each.reason}" for each in report.stuck[:5])
            return f"{counted(len(report.stuck), 'ledger')} stuck: {reasons}"

        self._background.begin(f"drain of {bookie}", request.caller, work)
        return f"{bookie} is being drained{_STATED}"

    async def _read_only(self, request: ActionRequest) -> str:
        bookie, metadata = await self._known(request.target), self._client.metadata_store
        orders = ReadOnlyOrders(metadata.store, metadata.paths)
        if request.off:
            await orders.take_back(bookie)
            return f"{bookie} may take new entries again"
        await orders.give(bookie, f"{request.caller} by the console {self._name}")
        return f"{bookie} is ordered to take no new entries"

    async def _purge(self, request: ActionRequest) -> str:
        ledger_id, records = _ledger_id(request.target), self._client.metadata_store.ledgers.restorable
        if not await records.has(ledger_id, fresh=True):
            raise RefusedRequestError(
                f"Nothing was done: ledger {ledger_id} is not among the deleted ones that can be brought back", 404
            )
        try:
            custom = (await records.read(ledger_id)).metadata.custom
        except MetadataFormatError:  # of one that nobody can read nobody knows whose it was
            self._require(request, Right.DELETE, NO_OWNER)
        else:
            self._require(request, Right.DELETE, await self._owner(ledger_id, custom))
        await records.remove(ledger_id)
        return f"Ledger {ledger_id} is gone for ever"

    async def _owner(self, ledger_id: LedgerId, custom: Mapping[str, bytes]) -> Resource:
        return await self._client.metadata_store.ledger_owners.owner_of(ledger_id, custom)

    async def _known(self, name: str) -> BookieId:
        known = await Operator(self._client).all_bookies()
        try:
            require_bookies([name], known)
        except BookKeeperError:
            raise RefusedRequestError("Nothing was done: there is no bookie of this name", 404) from None
        return BookieId(name)


def _ledger_id(text: str) -> LedgerId:
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) < 1 << 63):
        raise RefusedRequestError("Nothing was done: a ledger is named by its number", 400)
    return LedgerId(int(text))
