"""``bk ledger entries``."""

from __future__ import annotations

from tests.bookkeeper.admin.commands import bk
from tests.integration.processes import Bookies


def test_who_holds_which_entries_of_a_ledger(cluster: Bookies) -> None:
    two = ("--ensemble", 2, "--write-quorum", 2, "--ack-quorum", 2)
    given = ("--size", 100, "--count", 50, "--password", "pw", *two)
    ledger = int(bk("ledger", "append", "-m", cluster.uri, *given).out)
    rows = bk("ledger", "entries", ledger, "-m", cluster.uri, "--json").document
    assert len(rows) == 2
    assert all(
        (row["entries"], row["held"], row["missing"], row["problem"]) == (["0..49"], 50, 0, None) for row in rows
    )
    spare = ({"b1", "b2", "b3"} - {row["bookie"] for row in rows}).pop()
    other = bk("ledger", "entries", ledger, "--bookie", spare, "-m", cluster.uri, "--json").document
    assert other == [{"bookie": spare, "entries": [], "held": 0, "missing": 0, "problem": None}]
    assert "0..49" in bk("ledger", "entries", ledger, "-m", cluster.uri).out
    bk("ledger", "entries", 777777, "-m", cluster.uri).refused("there is no ledger 777777")
