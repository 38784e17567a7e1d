"""``bk bookies safe-to-stop``. (That it says yes, and no after a failure: ledger/test_explain.py.)"""

from __future__ import annotations

from tests.bookkeeper.admin.commands import bk

ONE = ("--ensemble", 1, "--write-quorum", 1, "--ack-quorum", 1)


def test_the_only_copy_keeps_its_bookie_from_being_stopped(embedded: str) -> None:
    bk("ledger", "append", "-m", embedded, "--size", 10, "--count", 5, *ONE)
    no = bk("bookies", "safe-to-stop", "b1", "-m", embedded)
    assert no.status == 1 and no.out.startswith("no: do not stop b1 now") and "1 ledger would suffer" in no.out
