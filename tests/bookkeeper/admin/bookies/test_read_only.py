"""``bk bookies read-only``."""

from __future__ import annotations

from tests.bookkeeper.admin.commands import bk
from tests.integration.processes import Bookies, until


def test_a_bookie_is_ordered_to_be_read_only_and_back(cluster: Bookies) -> None:
    assert "b1 is ordered to take no new entries" in bk("bookies", "read-only", "b1", "-m", cluster.uri).out
    until(lambda: cluster.states()["b1"] == "read-only")
    assert "may take new entries again" in bk("bookies", "read-only", "b1", "--off", "-m", cluster.uri).out
    until(lambda: cluster.states()["b1"] == "writable")


def test_nobody_is_ordered_whom_the_cluster_does_not_know(cluster: Bookies) -> None:
    bk("bookies", "read-only", "b9", "-m", cluster.uri).refused("there is no bookie b9; known are b1, b2, b3")
