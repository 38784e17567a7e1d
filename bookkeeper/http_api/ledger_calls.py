"""What is asked of ledgers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from bookkeeper.access import Right
from bookkeeper.bookie.health.health import PageReply
from bookkeeper.client.operators import Operator
from bookkeeper.client.read.read_handle import ReadHandle
from bookkeeper.errors import BookKeeperError, NoSuchLedgerError, in_words
from bookkeeper.http_api.request import (
    ApiReply,
    ApiRequest,
    Call,
    Items,
    JsonStream,
    MayDo,
    RefusedRequestError,
    json_text,
)
from bookkeeper.http_api.shapes import entry_text, ledger_document, ledger_text
from bookkeeper.ids import LedgerId
from bookkeeper.ledger import LedgerMetadata

LEDGERS_PAGE: Final = 100
"""Ledgers of a page. Apache's server counts from 0 where it compares and from 1 where it counts: its first page has 99
ledgers, and ours has the same."""

ENTRIES_PAGE: Final = 1000

ENTRIES_EACH: Final = 100
"""After so many entries it is asked again whether their reader may read them."""


class LedgerCalls:
    """Answers by a client of the cluster."""

    def __init__(self, operator: Operator, require: MayDo) -> None:
        self._operator = operator
        self._require = require

    @property
    def calls(self) -> dict[tuple[str, str], Call]:
        """By method and path."""
        ledger = "/api/v1/ledger"
        return {
            ("GET", f"{ledger}/list"): self.list,
            ("GET", f"{ledger}/metadata"): self.metadata,
            ("GET", f"{ledger}/read"): self.read,
            ("DELETE", f"{ledger}/delete"): self.delete,
        }

    async def list(self, request: ApiRequest) -> ApiReply:
        """The ledgers of a page, or all."""
        if not request.is_true("print_metadata"):
            return JsonStream(self._ids())
        page = request.number("page", -1)
        first, last = ((page - 1) * LEDGERS_PAGE, page * LEDGERS_PAGE - 1) if page > 0 else (0, None)
        show: Callable[[LedgerId, LedgerMetadata], Any] = (
            ledger_document if request.is_true("decode_meta") else lambda _, found: ledger_text(found)
        )
        return JsonStream(self._ledgers(first, last, show))

    async def _ids(self) -> Items:
        async for ledger_id in self._operator.client.list_ledgers():
            yield str(ledger_id), None

    async def _ledgers(self, first: int, last: int | None, show: Callable[[LedgerId, LedgerMetadata], Any]) -> Items:
        """Those whose numbers in the list, from 1 on, are ``first`` to ``last``. What cannot be read says why."""
        if last is None:
            async for ledger_id, found in self._operator.all_metadata():
                yield str(ledger_id), _shown(ledger_id, found, show)
            return
        number = 0
        async for ledger_id in self._operator.client.list_ledgers():
            number += 1
            if number > last:
                return
            if number < first:
                continue
            try:
                known: LedgerMetadata | BookKeeperError = await self._operator.metadata(ledger_id)
            except NoSuchLedgerError:
                continue  # deleted meanwhile
            except BookKeeperError as error:
                known = error
            yield str(ledger_id), _shown(ledger_id, known, show)

    async def metadata(self, request: ApiRequest) -> PageReply:
        """What is known of one ledger."""
        if "ledger_id" not in request.params:
            return PageReply(404, "Not found method. Should be GET method")
        ledger_id = _ledger_of(request)
        return PageReply(200, {str(ledger_id): ledger_document(ledger_id, await self._operator.metadata(ledger_id))})

    async def read(self, request: ApiRequest) -> ApiReply:
        """Entries of a ledger, without fencing it."""
        if "ledger_id" not in request.params:
            return PageReply(404, "Not found method. Should be GET method, with ledger_id provided")
        ledger_id, page = _ledger_of(request), request.number("page", -1)
        first, last = request.number("start_entry_id", 0), request.number("end_entry_id", -1)
        if page > 0:
            begin, end = (page - 1) * ENTRIES_PAGE, page * ENTRIES_PAGE - 1
            first, last = max(first, begin), end if last == -1 else min(last, end)
        if first < 0 or last < -1:
            raise RefusedRequestError("start_entry_id and end_entry_id must be 0 or more")
        if last != -1 and first > last:
            raise RefusedRequestError(
                f"parameter for start_entry_id: {first} and end_entry_id: {last} conflict with page={page}"
            )
        found = await self._operator.metadata(ledger_id)
        still = partial(self._require_owners, request, Right.READ, ledger_id, found)
        await still()
        reader = await self._operator.open_ledger(ledger_id)
        return JsonStream(self._entries(reader, first, last, page, still))

    async def _require_owners(
        self, request: ApiRequest, right: Right, ledger_id: LedgerId, found: LedgerMetadata
    ) -> None:
        """Check that a caller has a right on what belongs to whose the ledger is now: it may have been handed over.
        Raises: RefusedRequestError, BookKeeperError."""
        owners = self._operator.client.metadata_store.ledger_owners
        self._require(request, right, await owners.owner_of(ledger_id, found.custom))

    async def _entries(
        self, reader: ReadHandle, first: int, last: int, page: int, still: Callable[[], Awaitable[None]]
    ) -> Items:
        async with reader:
            if page > 0:
                yield "Entries for page: ", str(page)
            confirmed = int(reader.last_add_confirmed)
            end = confirmed if last == -1 else min(last, confirmed)
            if first <= end:
                async for entry in reader.read(first, end):
                    if entry.entry_id % ENTRIES_EACH == 0:
                        await still()
                    yield str(entry.entry_id), entry_text(entry.payload)

    async def delete(self, request: ApiRequest) -> PageReply:
        """Delete a ledger, if the caller may delete what its owner has. One that does not exist is gone already, as in
        Apache's server."""
        if "ledger_id" not in request.params:
            return PageReply(404, "Not ledger found. Should provide ledger_id=<id>")
        ledger_id = _ledger_of(request)
        try:
            found = await self._operator.metadata(ledger_id)
            await self._require_owners(request, Right.DELETE, ledger_id, found)
            await self._operator.client.delete_ledger(ledger_id)
        except NoSuchLedgerError:
            pass
        return json_text(f"Deleted ledger: {ledger_id}")


def _ledger_of(request: ApiRequest) -> LedgerId:
    number = request.number("ledger_id")
    if not 0 <= number < 1 << 63:
        raise RefusedRequestError("ledger_id must be 0 or more, and below 2 to the power of 63")
    return LedgerId(number)


def _shown(
    ledger_id: LedgerId, found: LedgerMetadata | BookKeeperError, show: Callable[[LedgerId, LedgerMetadata], Any]
) -> Any:
    if isinstance(found, BookKeeperError):
        return f"cannot be read: {in_words(found)}"
    return show(ledger_id, found)
