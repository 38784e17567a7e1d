"""What must hold of deleted ledgers is watched, and what breaks it is seen."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from bookkeeper.ids import LedgerId
from bookkeeper.meta.records.deleted_ledgers import DeletedLedger
from bookkeeper.volumes import OneVolume
from tests.bookkeeper.storage.recording_disk import RecordingDisk
from tests.bookkeeper.storage.workload import CONFIG, KEY, make_entry, open_engine
from tests.simulation.watch.deletions import DeletionMonitor, deleted_ledger


def new_monitor() -> tuple[DeletionMonitor, list[str], Counter[str]]:
    problems: list[str] = []
    counts: Counter[str] = Counter()

    def count(what: str, by: int) -> None:
        counts[what] += by

    return DeletionMonitor(lambda rule, what: problems.append(f"{rule}: {what}"), count), problems, counts


def record(ledger: int, grace_s: int, at_ms: int) -> DeletedLedger:
    return DeletedLedger(LedgerId(ledger), grace_s, b"", at_ms)


@pytest.mark.parametrize(
    ("path", "ledger"),
    [
        ("/ledgers-py/deleted/ledgers/0/0000/0032", 50),
        ("/ledgers-py/deleted/ledgers/1/0001/0003", (1 << 26) + (1 << 13) + 3),
        ("/ledgers-py/deleted/ledgers/0/0000", None),
        ("/ledgers/00/0000/L0050", None),
    ],
)
def test_records_are_known_by_their_paths(path: str, ledger: int | None) -> None:
    assert deleted_ledger(path) == ledger


@pytest.mark.rule("G8")
def test_a_ledger_is_gone_for_good_when_its_record_goes_and_it_is_not_there() -> None:
    monitor, problems, counts = new_monitor()
    for ledger, back in ((1, True), (2, False), (3, False)):
        monitor.on_record(ledger, record(ledger, 1, 5000), False, 5000)
        monitor.on_record(ledger, None, back, 5999 if ledger == 3 else 6000)
    assert monitor.gone == {2, 3} and not monitor.restorable
    assert problems == ["G8: ledger 3 cannot be brought back any more, 1 ms too early"]
    assert counts == {"ledgers deleted": 3, "ledgers brought back": 1, "ledgers gone for good": 2}


@pytest.mark.rule("G8")
def test_a_bookie_that_drops_what_can_be_brought_back_is_seen() -> None:
    monitor, problems, counts = new_monitor()
    engine, workers = open_engine(RecordingDisk())
    ended: list[Any] = []
    for ledger in (1, 2, 3):
        engine.append_entry(LedgerId(ledger), KEY, make_entry(ledger, 0))
    workers.pump()
    volumes = OneVolume(engine, CONFIG)
    monitor.watch("b1", volumes)
    monitor.gone |= {1, 9}
    volumes.collect({LedgerId(1), LedgerId(9)}, ended.append, never_again=[(7, 8)])
    workers.pump()
    assert not problems and 8 in engine.dropped
    volumes.collect(lambda ledger: ledger < 3, ended.append)
    workers.pump()
    assert problems == ["G8: b1 drops ledgers [2], which are there or can be brought back"]
    assert ended == [None, None] and counts["ledgers dropped by a bookie"] == 2
