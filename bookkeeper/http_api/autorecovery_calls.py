"""What is asked of autorecovery; and recoveries and decommissions of bookies, which go on in the background."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from bookkeeper.access import CLUSTER, Right
from bookkeeper.amounts import counted
from bookkeeper.bookie.health.health import PageReply
from bookkeeper.client.operators import Operator, require_bookies
from bookkeeper.errors import IllegalOperationError, MetadataFormatError, in_words
from bookkeeper.http_api.background import BackgroundWork
from bookkeeper.http_api.request import ApiReply, ApiRequest, Call, Items, JsonStream, MayDo, RefusedRequestError
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.meta.records.autorecovery import AutorecoveryNodes
from bookkeeper.replication.config import DecommissionConfig, DrainConfig
from bookkeeper.replication.decommissioning import StuckLedger, decommission, drain, forget

_NOTHING = "No under replicated ledgers found"


class AutorecoveryCalls:
    """Answers by a client of the cluster."""

    def __init__(
        self, operator: Operator, autorecovery: AutorecoveryNodes, background: BackgroundWork, require: MayDo
    ) -> None:
        self._require = require
        self._operator = operator
        self._autorecovery = autorecovery
        self._background = background
        self._marks = operator.client.metadata_store.under_replication

    @property
    def calls(self) -> dict[tuple[str, str], Call]:
        """By method and path."""
        at = "/api/v1/autorecovery"
        return {
            ("GET", f"{at}/status"): self.status,
            ("PUT", f"{at}/status"): self.switch,
            ("PUT", f"{at}/bookie"): self.recover,
            ("GET", f"{at}/list_under_replicated_ledger"): self.list_marked,
            ("GET", f"{at}/who_is_auditor"): self.who_is_auditor,
            ("PUT", f"{at}/trigger_audit"): self.trigger_audit,
            ("GET", f"{at}/lost_bookie_recovery_delay"): self.delay,
            ("PUT", f"{at}/lost_bookie_recovery_delay"): self.set_delay,
            ("PUT", f"{at}/decommission"): self.decommission,
        }

    # -- on and off, and the auditor ------------------------------------------------------------------------

    async def status(self, request: ApiRequest) -> PageReply:
        """Whether autorecovery is enabled."""
        return PageReply(200, {"enabled": await self._autorecovery.is_enabled()})

    async def switch(self, request: ApiRequest) -> PageReply:
        """Switch it on or off."""
        wanted = request.params.get("enabled")
        if wanted is None:
            return PageReply(400, "Param 'enabled' not found in {}")
        if wanted.lower() not in ("true", "false"):
            return PageReply(400, "Param 'enabled' must be true or false")
        await (self._autorecovery.enable() if wanted.lower() == "true" else self._autorecovery.disable())
        return await self.status(request)

    async def who_is_auditor(self, request: ApiRequest) -> PageReply:
        """The auditor's name."""
        auditor = await self._autorecovery.auditor()
        return PageReply(404, "No auditor elected") if auditor is None else PageReply(200, f"Auditor: {auditor}")

    async def trigger_audit(self, request: ApiRequest) -> PageReply:
        """Have the auditor look now."""
        if not await self._autorecovery.is_enabled():
            return PageReply(404, "Exception when do operation. Autorecovery is disabled: nobody would look")
        if await self._autorecovery.auditor() is None:
            return PageReply(404, "Exception when do operation. There is no auditor: start one with bk autorecovery")
        await self._autorecovery.write_delay(await self._autorecovery.delay_s() or 0)
        return PageReply(200, "Success trigger audit.")

    async def delay(self, request: ApiRequest) -> PageReply:
        """After how many seconds a bookie counts as lost."""
        seconds = await self._autorecovery.delay_s()
        if seconds is None:
            return PageReply(404, "Exception when get lostBookieRecoveryDelay. Nobody has set it yet")
        return PageReply(200, f"lostBookieRecoveryDelay value: {seconds}")

    async def set_delay(self, request: ApiRequest) -> PageReply:
        """Set that."""
        if request.body is None:
            return PageReply(404, "Null request body for lostBookieRecoveryDelay.")
        told = request.document("", 500)
        if "delay_seconds" not in told:
            return PageReply(404, "Request body not contains lostBookieRecoveryDelay.")
        seconds = told["delay_seconds"]
        if not isinstance(seconds, int) or isinstance(seconds, bool) or not 0 <= seconds < 1 << 31:
            raise RefusedRequestError("delay_seconds must be a whole number of seconds, 0 or more")
        await self._autorecovery.write_delay(seconds)
        return PageReply(200, f"Success set lostBookieRecoveryDelay to {seconds}")

    # -- under-replicated ledgers ---------------------------------------------------------------------------

    async def list_marked(self, request: ApiRequest) -> ApiReply:
        """Ledgers that are marked, with the bookies that lack entries if that is asked for."""
        lacking, not_lacking = (request.params.get(f"{word}missingreplica", "") for word in ("", "excluding"))
        with_bookies = "printmissingreplica" in request.params
        found = self._marked(lacking, not_lacking, with_bookies)
        try:
            first = await anext(found)
        except StopAsyncIteration:
            return PageReply(404, _NOTHING)
        return JsonStream(self._shown(first, found, with_bookies), is_object=with_bookies)

    async def _shown(
        self,
        first: tuple[LedgerId, Sequence[BookieId]],
        others: AsyncGenerator[tuple[LedgerId, Sequence[BookieId]], None],
        with_bookies: bool,
    ) -> Items:
        def item(mark: tuple[LedgerId, Sequence[BookieId]]) -> tuple[str | None, Any]:
            return (str(mark[0]), list(mark[1])) if with_bookies else (None, int(mark[0]))

        async with aclosing(others):
            yield item(first)
            async for mark in others:
                yield item(mark)

    async def _marked(
        self, lacking: str, not_lacking: str, with_bookies: bool
    ) -> AsyncGenerator[tuple[LedgerId, Sequence[BookieId]], None]:
        """Marks are read only where that is needed. One that is damaged names no bookie, and stops no list."""
        async for ledger_id in self._marks.ledgers():
            bookies: Sequence[BookieId] = ()
            if lacking or not_lacking or with_bookies:
                try:
                    mark = await self._marks.read(ledger_id)
                except MetadataFormatError:
                    pass
                else:
                    if mark is None:
                        continue  # repaired meanwhile
                    bookies = mark.bookies
            if (not lacking or lacking in bookies) and not_lacking not in bookies:
                yield ledger_id, bookies

    # -- in the background ----------------------------------------------------------------------------------

    async def recover(self, request: ApiRequest) -> PageReply:
        """Move the ledgers of bookies to others, and forget the bookies if that is asked for: a repair of whatever they
        hold, which closes ledgers that are open."""
        self._require(request, Right.REPAIR, CLUSTER)
        if request.body is None:
            return PageReply(404, "No request body provide.")
        told = request.document("ERROR parameters: ", 404)
        sources, targets = _names(told, "bookie_src"), _names(told, "bookie_dest")
        forgets = _flag(told, "delete_cookie")
        if not sources:
            return PageReply(404, "Not found method. Should be PUT method")
        await self._require_known(sources + targets, "ERROR parameters: ")
        self._background.begin(
            f"recovery of {', '.join(sources)}",
            request.caller,
            lambda: self._drain(sources, targets, forgets),
            how=(tuple(targets), forgets),
        )
        return PageReply(200, "Success send recovery request command.")

    async def decommission(self, request: ApiRequest) -> PageReply:
        """Take a bookie out, by the same repair."""
        self._require(request, Right.REPAIR, CLUSTER)
        if request.body is None:
            return PageReply(404, "Null request body for DecommissionService.")
        told = request.document("", 500)
        if "bookie_src" not in told:
            return PageReply(404, "Request body not contains bookie_src.")
        failed = "Exception when send decommission command. "
        name = told["bookie_src"]
        if not isinstance(name, str):
            return PageReply(404, f"{failed}bookie_src must be the id of a bookie")
        await self._require_known([name], failed)
        forgets = _flag(told, "delete_cookie")
        self._background.begin(
            f"decommission of {name}",
            request.caller,
            (lambda: self._take_out(name)) if forgets else (lambda: self._drain([name], [], False)),
            how=forgets,
        )
        return PageReply(200, f"Success send decommission Bookie command {name}")

    async def _require_known(self, names: Sequence[str], wrong: str) -> None:
        try:
            require_bookies(names, await self._operator.all_bookies())
        except IllegalOperationError as error:
            raise RefusedRequestError(f"{wrong}{in_words(error)}", 404) from None

    async def _drain(self, sources: Sequence[str], targets: Sequence[str], forgets: bool) -> str:
        config = DrainConfig(targets=tuple(targets), recover_open=True, owner="bookkeeper-py http api")
        report = await drain(self._operator.client, [BookieId(name) for name in sources], config)
        if not report.is_complete:
            return _stuck(report.stuck)
        if forgets:
            await forget(self._operator.client, [BookieId(name) for name in sources])
        return ""

    async def _take_out(self, name: str) -> str:
        config = DecommissionConfig(drain=DrainConfig(recover_open=True, owner="bookkeeper-py http api"))
        report = await decommission(self._operator.client, [name], config)
        if report.is_complete:
            return ""
        return _stuck(report.stuck) or f"{name} holds nothing any more, and still runs: stop it, and ask again"


def _names(told: dict[str, Any], key: str) -> list[str]:
    found = told.get(key) or []
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise RefusedRequestError(f"ERROR parameters: {key} must be a list of ids of bookies", 404)
    return found


def _flag(told: dict[str, Any], key: str) -> bool:
    """A flag, which Apache's servers take as JSON's and as text."""
    found = told.get(key, False)
    if not isinstance(found, bool) and found not in ("true", "false"):
        raise RefusedRequestError(f"ERROR parameters: {key} must be true or false", 404)
    return found in (True, "true")


def _stuck(stuck: Sequence[StuckLedger]) -> str:
    some = "; ".join(str(each) for each in stuck[:5])
    return f"{counted(len(stuck), 'ledger', 'is', 'are')} stuck: {some}" if stuck else ""
