"""``bk ledger underreplicated`` and ``bk ledger repair``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bookkeeper import BookKeeper
from bookkeeper.admin.ledger.repairs import repair_progress
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.real import run
from tests.bookkeeper.admin.commands import Terminal, bk

ONE = ("--ensemble", 1, "--write-quorum", 1, "--ack-quorum", 1)


@pytest.fixture
def ledger(embedded: str) -> int:
    said = bk("ledger", "append", "-m", embedded, "--size", 10, "--count", 5, *ONE)
    return int(said.out)


def mark(uri: str, ledger: int, bookie: str) -> None:
    async def work() -> None:
        async with BookKeeper.connect(uri) as client:
            await client.metadata_store.under_replication.mark(LedgerId(ledger), [BookieId(bookie)], 1_700_000_000_000)

    run(work())


def test_marks_are_listed_for_people_and_for_programs_and_the_status_says_whether_there_are_any(tmp_path: Path) -> None:
    uri = f"sqlite://{tmp_path}/metadata.db"
    bk("init", "-m", uri)
    assert bk("ledger", "underreplicated", "-m", uri).out == "no ledger is under-replicated\n"
    assert bk("ledger", "underreplicated", "-m", uri, "--json").document == []
    mark(uri, 7, "b2")
    shown = bk("ledger", "underreplicated", "-m", uri)
    assert (
        shown.status == 1 and "1 under-replicated ledger" in shown.out and "b2" in shown.out and "2023-11" in shown.out
    )
    listed = bk("ledger", "underreplicated", "-m", uri, "--json")
    assert listed.status == 1
    assert json.loads(listed.out) == [
        {"ledger": 7, "bookies": ["b2"], "since_ms": 1_700_000_000_000, "stuck": None, "tries": 0}
    ]
    other = bk("ledger", "underreplicated", "-m", uri, "--missing", "b9")
    assert (other.status, other.out) == (0, "no ledger is under-replicated on b9\n")


def test_a_whole_ledger_needs_no_repair(embedded: str, ledger: int) -> None:
    said = bk("ledger", "repair", ledger, "-m", embedded)
    assert (said.status, said.out) == (0, f"ledger {ledger} is whole; nothing had to be copied\n")
    document = bk("ledger", "repair", ledger, "-m", embedded, "--json").document
    assert document["whole"] and document["copied"] == [] and document["problems"] == []
    bk("ledger", "repair", 4711, "-m", embedded).refused("there is no ledger 4711")
    bk("ledger", "repair", ledger, "-m", embedded, "--throttle", "fast").refused("is not a number", status=2)


def test_on_a_terminal_it_is_shown_what_is_being_done(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("COLUMNS", "120")
    with repair_progress(7) as (say, on_copied):
        say("copies entries 0..9 on b1")
        on_copied(10, 1024)
    assert "ledger 7: copies entries 0..9 on b1" in terminal.getvalue()
