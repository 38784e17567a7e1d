"""What entry logs and index segments say of groups that the journal does not have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from bookkeeper.codec import record, scan_records
from bookkeeper.storage.base.manifest import Manifest, read_manifest
from bookkeeper.storage.index.ledger_descriptor import LedgerDescriptor
from bookkeeper.storage.ledgers.known_ledgers import KnownLedgers
from bookkeeper.storage.start.evidence import ReplayFindings, indexed_only, logged_only
from bookkeeper.storage.start.replayed_ledgers import ReplayedLedgers
from tests.bookkeeper.storage.recording_disk import RecordingDisk
from tests.bookkeeper.storage.workload import CONFIG, Life, lid, make_entry, open_engine, read

ROOMY = replace(CONFIG, journal_file_bytes=65536, entry_log_bytes=1 << 20)


def cut_to(files: dict[str, bytes], earlier: dict[str, bytes]) -> dict[str, bytes]:
    """The journal as it was, everything else as it is."""
    return {name: earlier.get(name, data) if "/journal/" in name else data for name, data in files.items()}


def a_life(last: Callable[[Life], None]) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """(the files before the last group, the files after it)."""
    life = Life(RecordingDisk(), ROOMY)
    life.add(1, 0, 1)
    life.add(2, 0)
    life.pump()
    life.checkpoint()
    life.pump()
    life.add(1, 2)
    life.explicit_lac(2, 0)
    life.pump()
    before = life.disk.files()
    last(life)
    life.pump()
    return before, life.disk.files()


@pytest.mark.rule("K9", "K18")
@pytest.mark.parametrize(
    "last",
    [
        lambda life: life.add(1, 3),
        lambda life: life.add(7, 0),
        lambda life: life.fence(1),
        lambda life: life.fence(9),
        lambda life: life.explicit_lac(2, 5),
    ],
    ids=["an entry", "a new ledger", "a fence", "a fence of a ledger never seen", "an explicit LAC"],
)
def test_whatever_only_the_entry_log_has_proves_that_the_journal_had_it(last: Callable[[Life], None]) -> None:
    """A journal whose end is an older copy, or has rotted to nothing, looks as if nothing had followed."""
    before, after = a_life(last)
    engine, _ = open_engine(RecordingDisk(after), ROOMY)
    assert engine.report.limbo_reason is None, "nothing is missing"
    engine, workers = open_engine(RecordingDisk(cut_to(after, before)), ROOMY)
    assert "had been durable" in str(engine.report.limbo_reason) and engine.report.replayed_groups > 0
    answers = [read(engine, workers, ledger, entry) for ledger, entry in ((1, 3), (7, 0))]
    assert all(not isinstance(answer, LookupError) for answer in answers)


@pytest.mark.rule("K9")
def test_a_removal_that_only_the_entry_log_has_is_one_too() -> None:
    before, after = a_life(lambda life: life.collect(2))
    marked = {name: before[name] if name == "/ledgers/manifest" else data for name, data in after.items()}
    marked["/ledgers/0000000000000002.index"] = before.get("/ledgers/0000000000000002.index", b"")
    engine, _ = open_engine(RecordingDisk(cut_to(marked, before)), ROOMY)
    assert engine.report.limbo_reason is not None and engine.is_fenced(lid(2))


@pytest.mark.rule("K9")
def test_a_checkpoint_that_did_not_come_to_its_manifest_is_evidence_where_the_log_has_lost_it() -> None:
    life = Life(RecordingDisk(), ROOMY)
    life.add(1, 0)
    life.pump()
    before = life.disk.files()
    life.add(1, 1)
    life.fence(3)
    life.pump()
    life.checkpoint()
    life.pump()
    after = life.disk.files()
    logs = {name: before[name] for name in before if name.endswith(".log")}
    files = {**cut_to(after, before), **logs, "/ledgers/manifest": before["/ledgers/manifest"]}
    assert any(name.endswith(".index") for name in files.keys() - before.keys())
    engine, _ = open_engine(RecordingDisk(files), ROOMY)
    assert "knows more of ledger" in str(engine.report.limbo_reason)
    for name in files.keys() - before.keys():  # a torn segment proves nothing
        files[name] = files[name][:-3]
    engine, _ = open_engine(RecordingDisk(files), ROOMY)
    assert engine.report.limbo_reason is None


@pytest.mark.rule("K9")
def test_a_removal_that_only_such_a_checkpoint_has_is_evidence_too() -> None:
    life = Life(RecordingDisk(), ROOMY)
    life.add(1, 0)
    life.add(2, 0)
    life.pump()
    before = life.disk.files()
    life.collect(1)
    life.pump()
    segments = {name: data for name, data in life.disk.files().items() if name.endswith(".index")}
    engine, _ = open_engine(RecordingDisk({**segments, **before}), ROOMY)
    assert "knows more of ledger 1" in str(engine.report.limbo_reason)
    engine, _ = open_engine(RecordingDisk(before), ROOMY)
    assert engine.report.limbo_reason is None


@pytest.mark.rule("K9", "K3")
def test_what_is_left_over_from_before_the_mark_is_no_evidence() -> None:
    before, after = a_life(lambda life: life.add(1, 3))
    disk = RecordingDisk(after)
    engine, workers = open_engine(disk, ROOMY)
    assert read(engine, workers, 1, 3)
    left = {name: data for name, data in after.items() if name.endswith((".log", ".index"))}
    files = {**left, **disk.files()}  # the start ended before it had removed them
    engine, _ = open_engine(RecordingDisk(files), ROOMY)
    assert engine.report.limbo_reason is None and before
    mark = read_manifest(RecordingDisk(files), "/ledgers")
    assert mark is not None
    unread = ReplayFindings(KnownLedgers())
    assert logged_only(RecordingDisk(files), "/ledgers", mark, unread, ()) is None
    assert logged_only(RecordingDisk(after), "/ledgers", Manifest(), unread, ()) is not None
    assert logged_only(RecordingDisk(after), "/ledgers", Manifest(next_log=99), unread, ()) is None, "left over"
    made = {name.removeprefix("/ledgers/") for name in after if name.endswith(".log")}
    assert logged_only(RecordingDisk(after), "/ledgers", Manifest(), unread, made) is None, "of this very start"
    assert indexed_only(RecordingDisk(files), "/ledgers", mark, [1], unread) is None


@pytest.mark.rule("K9")
@pytest.mark.parametrize("missing", [None, *range(6)])
def test_one_record_among_known_ones_is_found_wherever_it_is(missing: int | None) -> None:
    records = [record(make_entry(ledger_id, entry_id)) for entry_id in (0, 1, 4) for ledger_id in (7, 8)]
    ledgers = ReplayedLedgers()
    for at, each in enumerate(records):
        if at != missing:
            ledgers.apply(each, scan_records(each, 0, len(each)), 1000 + at)
    data = b"".join(records)
    found = ReplayFindings(ledgers.states).first_unknown(data, scan_records(data, 0, len(data)))
    assert found == missing


@pytest.mark.rule("K9")
def test_an_entry_between_two_that_were_replayed_is_not_known_for_that() -> None:
    """They lie in one stretch of the index, which has a hole where it is."""
    records = [record(make_entry(7, entry_id)) for entry_id in range(3)]
    ledgers = ReplayedLedgers()
    for each in (records[0], records[2]):
        ledgers.apply(each, scan_records(each, 0, len(each)), 1000)
    data = b"".join(records)
    assert ReplayFindings(ledgers.states).first_unknown(data, scan_records(data, 0, len(data))) == 1


@pytest.mark.rule("K9", "B3")
def test_a_row_says_more_by_its_last_entry_its_fence_or_its_explicit_lac() -> None:
    known = LedgerDescriptor(lid(7), b"k" * 20, last_entry=4, explicit_lac=3, explicit_blob=b"")
    states = KnownLedgers()
    states.add(known)
    states.drop(9)
    findings = ReplayFindings(states)
    assert not findings.is_behind(replace(known, last_entry=3, explicit_lac=2))
    assert not findings.is_behind(replace(known)) and not findings.is_behind(replace(known, ledger_id=lid(9)))
    for more in ({"last_entry": 5}, {"explicit_lac": 4}, {"fenced": True}, {"ledger_id": lid(8)}):
        assert findings.is_behind(replace(known, **more)), more
    known.fenced = True
    assert not findings.is_behind(replace(known))
