"""The first page, and the page of a bookie."""

from __future__ import annotations

import dataclasses

from bookkeeper.access import Mode
from bookkeeper.autorecovery.report import AutorecoveryReport, StuckRepair
from bookkeeper.console.blocks import ShownTable
from bookkeeper.console.panels import Tone
from bookkeeper.console.resident import CachedValue
from bookkeeper.console.views.cluster_view import bookie_page, cluster_page
from bookkeeper.ids import BookieId, LedgerId
from tests.bookkeeper.console.views.made_up import asked, bookies, closed, kept, ledgers, texts


def test_it_shows_racks_bookies_and_panels() -> None:
    picture = bookies(places={"b1": "/rack1", "b3": "/rack2"})
    panels = [("/panels/x", "Streams", "2 streams", Tone.GOOD)]
    view = cluster_page(kept(picture), kept(ledgers(closed(), closed("b2", "b1"))), panels, asked())
    said = texts(view)
    assert "b1 | /rack1 | writable | 60 % | 4.0 GiB | 10.0 GiB | 2 ms | 2 | " in said
    assert "b3 | /rack2 | absent | – | – | – | – | 0 | " in said
    assert "/rack1 | 1 | 1 | 0 | 0 | 60 %" in said and "Streams | 2 streams" in said
    assert "ledgers: 2: 2 closed" in said and "as of 3 s ago" in said
    assert view.summary == "1 bookie absent" and view.tone is Tone.WARN


def test_a_disk_that_is_nearly_full_warns() -> None:
    view = cluster_page(kept(bookies()), kept(ledgers()), [], asked())
    (table,) = [block for block in view.blocks if isinstance(block, ShownTable) and block.title == "Bookies"]
    bars = {row[0].text: row[3] for row in table.rows}
    assert bars["b2"].tone is Tone.WARN and bars["b1"].tone is Tone.PLAIN and bars["b2"].percent == 95


def test_what_is_lost_stuck_or_short_comes_first() -> None:
    lost = closed("b3", "b4")
    view = cluster_page(kept(bookies(marked=[LedgerId(1)])), kept(ledgers(lost, closed("b1", "b3"))), [], asked())
    assert view.summary == "1 ledger lost for now, 1 ledger short of copies, 1 bookie absent" and view.tone is Tone.BAD
    assert "1 ledger (0)" in texts(view)
    stuck = AutorecoveryReport("x", stuck=(StuckRepair(7, "why", 2, 1),))
    view = cluster_page(kept(bookies(reports=[stuck])), kept(ledgers()), [], asked())
    assert view.summary.startswith("1 repair stuck") and view.tone is Tone.BAD


def test_what_is_switched_off_or_open_is_said() -> None:
    said = texts(cluster_page(kept(bookies(enabled=False)), kept(ledgers()), [], asked()))
    assert "Autorecovery is disabled" in said
    assert "There is no auditor" in texts(cluster_page(kept(bookies(auditor=None)), kept(ledgers()), [], asked()))
    open_one = dataclasses.replace(bookies(), access=Mode.ENFORCE, not_enforcing=(BookieId("b1"),))
    assert "not enforced by b1" in texts(cluster_page(kept(open_one), kept(ledgers()), [], asked()))
    hidden = dataclasses.replace(bookies(), access=None)
    assert "cannot be read" in texts(cluster_page(kept(hidden), kept(ledgers()), [], asked()))


def test_bookies_are_shown_while_ledgers_are_still_read_and_with_what_keeps_them_from_being_read() -> None:
    view = cluster_page(kept(bookies(), "the store is away"), CachedValue(), [], asked())
    assert view.summary == "Ledgers are being read" and "the store is away" in view.problem
    assert cluster_page(CachedValue(), CachedValue(), [], asked()).summary == "The bookies are being asked"


def test_a_bookies_page_offers_what_is_switched_on_and_makes_sense() -> None:
    def actions(name: str, *on: str) -> list[tuple[str, str]]:
        view = bookie_page(kept(bookies()), kept(ledgers(closed())), asked("/bookies", *on, of=name))
        assert "disk in use" in texts(view)
        return [(each.action, each.params.get("off", "")) for each in view.actions]

    assert actions("b1") == []
    assert actions("b1", "read-only", "drain") == [("read-only", ""), ("drain", "")]
    assert actions("b3", "read-only") == [("read-only", ""), ("read-only", "1")]
    assert bookie_page(kept(bookies()), CachedValue(), asked("/bookies", of="b9")).code == 404
