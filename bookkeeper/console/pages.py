"""Which page a request means, and what it shows. In the connections' threads, from values that are kept in memory;
what must be asked anew (one ledger, one thing of a panel) is asked on the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.console.blocks import PageAddress
from bookkeeper.console.cells import PageLink
from bookkeeper.console.config import ConsoleConfig
from bookkeeper.console.panel_book import PanelBook
from bookkeeper.console.picture import BookiesPicture, LedgersPicture, LedgersReader
from bookkeeper.console.resident import Resident
from bookkeeper.console.views import cluster_view, ledger_view, ledgers_view, panel_view, repair_view
from bookkeeper.console.views.view import PageView, ViewRequest, not_found
from bookkeeper.errors import BookKeeperError, NoSuchLedgerError, in_words
from bookkeeper.ids import LedgerId
from bookkeeper.ledger import LedgerMetadata
from bookkeeper.replication.inspection.explain_ledger import ExplainedLedger, explain_ledger
from bookkeeper.seams import Clock

EXPLAIN_S: Final = 10.0
"""Seconds after which a ledger's bookies are waited for no longer."""
EXPLAINED_MAX: Final = 4
"""Ledgers whose bookies are asked at a time; one more waits."""
LEDGER_DIGITS: Final = 19
"""Digits of a ledger's id at most."""

_OWN: Final = (
    PageLink("Cluster", cluster_view.NAV),
    PageLink("Ledgers", ledgers_view.NAV),
    PageLink("Deleted", ledgers_view.DELETED),
    PageLink("Repair", repair_view.NAV),
)


class Pages:
    """The pages of one console."""

    def __init__(
        self,
        config: ConsoleConfig,
        client: BookKeeper,
        bookies: Resident[BookiesPicture],
        ledgers: Resident[LedgersPicture],
        reader: LedgersReader,
        panels: PanelBook,
        doing: Callable[[], frozenset[str]],
        clock: Clock,
    ) -> None:
        """``doing``: what the console was asked to do, and still does."""
        self._config, self._client, self._clock = config, client, clock
        self._bookies, self._ledgers, self._reader, self._panels = bookies, ledgers, reader, panels
        self._doing = doing
        self._explaining = asyncio.Semaphore(EXPLAINED_MAX)
        self.navigation = (
            *_OWN,
            *(PageLink(each.title, panel_view.panel_path(each.name)) for each in panels),
        )

    def page(self, path: str, params: dict[str, str], on_loop: Callable[[Coroutine[Any, Any, Any]], Any]) -> PageView:
        """The page at a path. ``on_loop`` runs something on the loop, and waits.

        Raises:
            BookKeeperError, OSError: it cannot be made.
        """
        asked = ViewRequest(
            PageAddress(path, params), self._clock.wall_ms(), self._config.refresh_s, self._config.allows
        )
        bookies, ledgers = self._bookies.get(), self._ledgers.get()
        match path.split("/")[1:]:
            case [""]:
                panels = [panel_view.panel_line(each, self._panels.resident(each.name).kept) for each in self._panels]
                return cluster_view.cluster_page(bookies, ledgers, panels, asked)
            case ["bookies"]:
                return cluster_view.bookie_page(bookies, ledgers, asked)
            case ["ledgers"]:
                return ledgers_view.ledgers_page(ledgers, self._reader.read_so_far, asked)
            case ["ledgers", number]:
                return self._ledger(number, asked, on_loop)
            case ["find"]:
                return self._ledger(params.get("ledger", "").strip(), asked, on_loop)
            case ["deleted"]:
                return ledgers_view.deleted_page(ledgers, asked)
            case ["repair"]:
                return repair_view.repair_page(bookies, ledgers, sorted(self._doing()), asked)
            case ["panels", name]:
                return self._panel(name, asked, on_loop)
        return not_found("Not found", "", "There is no such page")

    def _ledger(self, number: str, asked: ViewRequest, on_loop: Callable[[Coroutine[Any, Any, Any]], Any]) -> PageView:
        if not (number.isascii() and number.isdigit() and len(number) <= LEDGER_DIGITS):
            return not_found("Ledger", ledgers_view.NAV, "A ledger is named by its number")
        ledger_id = LedgerId(int(number))
        try:
            metadata, explained, why = on_loop(self._explained(ledger_id))
        except NoSuchLedgerError:
            return not_found(f"Ledger {ledger_id}", ledgers_view.NAV, "There is no such ledger")
        address = PageAddress(f"{ledgers_view.NAV}/{ledger_id}", asked.address.params)
        return ledger_view.ledger_page(
            ledger_id, metadata, explained, why, ViewRequest(address, asked.now_ms, asked.refresh_s, asked.offers)
        )

    async def _explained(self, ledger_id: LedgerId) -> tuple[LedgerMetadata, ExplainedLedger | None, str]:
        try:
            async with asyncio.timeout(EXPLAIN_S), self._explaining:
                found = await explain_ledger(self._client, ledger_id)
        except TimeoutError:
            why = f"it took longer than {EXPLAIN_S:g} s"
        except (BookKeeperError, OSError) as error:
            why = in_words(error)
        else:
            return found.metadata, found, ""
        return await self._client.metadata(ledger_id), None, why

    def _panel(self, name: str, asked: ViewRequest, on_loop: Callable[[Coroutine[Any, Any, Any]], Any]) -> PageView:
        panel = self._panels.get(name)
        if panel is None:
            unusable = next((each for each in self._panels.unusable if each.name == name), None)
            text = f"This panel cannot be used: {unusable.problem}" if unusable else "There is no such panel"
            return not_found("Panel", "", text)
        if not (key := asked.address.params.get("of", "")):
            return panel_view.panel_page(panel, self._panels.resident(name).get(), asked)
        page = on_loop(self._panels.detail(name, key))
        if page is None:
            return not_found(panel.title, panel_view.panel_path(name), "There is no such thing here")
        return panel_view.detail_page(panel, key, page, asked)
