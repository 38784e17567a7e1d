"""Under-replication: what is marked, what is being done, and what is stuck and why."""

from __future__ import annotations

import dataclasses

from bookkeeper.autorecovery.marked import MarkedLedger
from bookkeeper.autorecovery.report import AutorecoveryReport, StuckRepair
from bookkeeper.console.panels import Tone
from bookkeeper.console.resident import CachedValue
from bookkeeper.console.views.repair_view import repair_page
from bookkeeper.ids import BookieId, LedgerId
from tests.bookkeeper.console.views.made_up import NOW_MS, asked, bookies, kept, ledgers, texts


def test_marks_progress_and_reasons_are_shown() -> None:
    report = AutorecoveryReport(
        "host:1",
        auditor=True,
        auditing="b3 is away for 10 s",
        working=("ledger 4: copies 100 entries to b2",),
        repaired=12,
        copied_entries=4000,
        copied_bytes=2048,
        waiting=3,
        stuck=(StuckRepair(9, "no bookie has entry 5", 2, NOW_MS - 60_000),),
        stuck_count=150,
    )
    marked = [MarkedLedger(LedgerId(9), (BookieId("b3"),), NOW_MS - 120_000, "no bookie has entry 5", 2)]
    picture = dataclasses.replace(ledgers(), marked=tuple(marked))
    status = bookies(marked=[LedgerId(4), LedgerId(9)], reports=[report])
    view = repair_page(kept(status), kept(picture), ["drain of b1"], asked("/repair"))
    said = texts(view)
    assert view.summary == "2 ledgers marked, 1 stuck" and view.tone is Tone.BAD
    assert "9 | 2 min ago | b3 | no bookie has entry 5" in said and "4 | – | – | –" in said
    assert "ledger 4: copies 100 entries to b2" in said and "drain of b1" in said
    assert "host:1 | auditor | 12 | 0 | 4 000 | 2.0 KiB | 3 | 150" in said
    assert "149 more are not shown" in said and "it says: b3 is away for 10 s" in said


def test_a_cluster_without_marks_is_well_and_one_without_auditor_says_so() -> None:
    view = repair_page(kept(bookies(auditor=None)), CachedValue(), [], asked("/repair"))
    said = texts(view)
    assert view.tone is Tone.GOOD and "No ledger is under-replicated" in said and "There is no auditor" in said
    assert "Nothing is being repaired" in said and "last check of all ledgers: –" in said
