"""Which page a path means; what bookies do not answer does not keep a page away."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from bookkeeper.console import pages
from bookkeeper.console.config import ConsoleConfig
from bookkeeper.console.pages import Pages
from bookkeeper.console.panel_book import PanelBook
from bookkeeper.console.panels import PanelContext
from bookkeeper.console.picture import LedgersReader, picture_of_bookies
from bookkeeper.console.resident import Resident
from bookkeeper.testing.cluster import SimCluster
from tests.bookkeeper.replication.clusters import written


def test_paths_lead_to_their_pages_also_while_nothing_is_known_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    async def slow(*_: Any) -> Any:
        await asyncio.sleep(3600)

    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 3)
            clock, config = bk.services.seams.clock, ConsoleConfig()
            reader = LedgersReader(bk.metadata_store)
            bookies = Resident(lambda: picture_of_bookies(bk), clock, every_s=5, idle_s=60)
            ledgers = Resident(reader.picture, clock, every_s=5, idle_s=60)
            made = Pages(
                config, bk, bookies, ledgers, reader, PanelBook([], [], PanelContext(bk, "", clock)), frozenset, clock
            )
            loop = asyncio.get_running_loop()
            results: dict[str, Any] = {}

            def on_loop(work: Coroutine[Any, Any, Any]) -> Any:
                try:
                    work.send(None)
                except StopIteration as ended:
                    return ended.value
                raise AssertionError("it waits")

            for path in ("/", "/ledgers", "/deleted", "/repair", "/bookies"):
                view = made.page(path, {}, on_loop)
                results[path] = view.title
                assert view.refresh_s == 1.0 and not view.blocks, "nothing is known yet, and a browser asks again soon"
            assert results == {
                "/": "Cluster",
                "/ledgers": "Ledgers",
                "/deleted": "Deleted ledgers",
                "/repair": "Repair",
                "/bookies": "Bookie",
            }
            runs = [loop.create_task(each.run()) for each in (bookies, ledgers)]
            await asyncio.sleep(1)
            assert made.page("/", {}, on_loop).summary.startswith("Well")
            metadata, explained, why = await made._explained(ledger)
            assert metadata.is_closed and explained is not None and not why
            monkeypatch.setattr(pages, "explain_ledger", slow)
            metadata, explained, why = await made._explained(ledger)
            assert metadata.is_closed and explained is None and why == "it took longer than 10 s"
            for run in runs:
                run.cancel()

    SimCluster(1, 3).run(story)
