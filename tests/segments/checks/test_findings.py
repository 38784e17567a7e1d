"""What can be wrong with a stream is found, each kind by name, and a repair puts the record right."""

from __future__ import annotations

from dataclasses import replace

import pytest

from segments.chain import RemovedLedger, StreamChain, decode_chain, encode_chain
from segments.checks.findings import (
    Finding,
    LedgerFacts,
    Problem,
    ScannedSegment,
    StreamAccount,
    find_problems,
    repair_chain,
)
from segments.errors import ChainCorruptError
from segments.position import Position
from segments.retention.retention import CursorPosition
from tests.segments.retention.chains import at, chain_of, contents


def account(chain: StreamChain, **changes: object) -> StreamAccount:
    """A stream in which all accounts agree."""
    ledgers = {
        s.ledger_id: LedgerFacts(s.ledger_id, not s.is_open, s.contents.last_entry, "id") for s in chain.segments
    }
    if chain.next_ledger is not None:
        ledgers[chain.next_ledger] = LedgerFacts(chain.next_ledger, False, -1, "id")
    scans = {s.number: ScannedSegment(s.contents, s.start_seq_no) for s in chain.segments if s.records}
    return replace(StreamAccount("orders", "id", chain, ledgers, scans, {}), **changes)  # type: ignore[arg-type]


def places(needs: dict[str, Position]) -> dict[str, CursorPosition]:
    return {name: CursorPosition(name, position) for name, position in needs.items()}


def problems(found: StreamAccount) -> list[tuple[Problem, int | None]]:
    return [(each.problem, each.segment) for each in find_problems(found)]


def without(found: StreamAccount, ledger: int) -> StreamAccount:
    ledgers = {key: facts for key, facts in found.ledgers.items() if key != ledger}
    scans = {number: scan for number, scan in found.scans.items() if 100 + number != ledger}
    return replace(found, ledgers=ledgers, scans=scans)


def test_a_sound_stream_has_no_finding_and_its_repair_changes_nothing() -> None:
    chain = chain_of(3, opened=True).allocate(200).truncate(at(2, 1))
    sound = account(chain, cursors=places({"a": at(2, 1), "b": at(5), "c": chain.first_position}))
    assert find_problems(sound) == ()
    assert repair_chain(sound) == chain


def test_a_ledger_that_is_gone_is_told_and_its_segment_stays_listed() -> None:
    gone = without(account(chain_of(3)), 102)
    assert problems(gone) == [(Problem.LEDGER_MISSING, 2)]
    (finding,) = find_problems(gone)
    assert finding.text == "segment 2: ledger 102 is gone, and 10 records with it" and finding.repair is None
    assert repair_chain(gone) == gone.chain


def test_an_open_segment_without_a_ledger_is_taken_out() -> None:
    gone = without(account(chain_of(2, opened=True)), 103)
    assert problems(gone) == [(Problem.OPEN_LEDGER_MISSING, 3)]
    after = repair_chain(gone)
    assert after.open_segment is None and after.removing == (RemovedLedger(3, 103),) and after.next_number == 4


def test_a_completed_segment_with_an_open_or_longer_ledger() -> None:
    """SEG-110 the checker notices a ledger that is not closed, and one with another end."""
    sound = account(chain_of(2))
    facts = {**sound.ledgers, 101: LedgerFacts(101, False, -1, "id"), 102: LedgerFacts(102, True, 7, "id")}
    assert problems(replace(sound, ledgers=facts)) == [(Problem.LEDGER_NOT_CLOSED, 1), (Problem.LEDGER_LENGTH, 2)]


def test_a_foreign_ledger_and_one_that_is_listed_twice() -> None:
    chain = chain_of(3)
    twice = replace(chain, recent=(*chain.segments[:2], replace(chain.segments[2], ledger_id=101)))
    facts = {101: LedgerFacts(101, True, 2, "id"), 102: LedgerFacts(102, True, 2, "another")}
    found = account(twice, ledgers=facts)
    assert problems(found) == [(Problem.LEDGER_FOREIGN, 2), (Problem.LEDGER_TWICE, 3)]
    assert all(finding.repair is None for finding in find_problems(found))
    assert "was made for stream another" in find_problems(found)[0].text


def test_wrong_counts_and_sequence_numbers_are_found_and_repaired() -> None:
    """SEG-110 wrong counts, last records and sequence numbers are found; the repair makes the record say what the
    entries say, and a scan of the repaired stream finds nothing."""
    chain = chain_of(3)
    first, second, third = chain.segments
    wrong = replace(
        chain,
        recent=(
            replace(first, contents=contents(8)),
            replace(second, start_seq_no=8, contents=replace(contents(), last=(1, 9), last_txid=4)),
            replace(third, start_seq_no=18),
        ),
        records=28,
    )
    entries_say = account(chain)
    found = replace(entries_say, chain=wrong)
    assert problems(found) == [
        (Problem.COUNT, 1),
        (Problem.LAST, 1),
        (Problem.SEQUENCE, 2),
        (Problem.LAST, 2),
        (Problem.STATISTICS, 2),
        (Problem.SEQUENCE, 3),
    ]
    after = repair_chain(found)
    assert after == chain and decode_chain(encode_chain(after)) == chain
    assert find_problems(replace(found, chain=after)) == ()


def test_what_a_scan_could_not_read_stays_as_it_was_recorded() -> None:
    sound = account(chain_of(2))
    damaged = ScannedSegment(contents(5), 0, ("entry 1 is damaged",))
    found = replace(sound, scans={**sound.scans, 1: damaged})
    assert problems(found) == [(Problem.ENTRY_DAMAGED, 1)]
    assert repair_chain(found) == sound.chain


def test_the_ledger_made_in_advance() -> None:
    """SEG-110 a ledger in advance that is gone, closed, or a segment's own is found; the repair names none, and
    deletes none that is in use."""
    chain = chain_of(2).allocate(200)
    gone = without(account(chain), 200)
    assert problems(gone) == [(Problem.NEXT_LEDGER, None)]
    assert repair_chain(gone).next_ledger is None and repair_chain(gone).removing == (RemovedLedger(0, 200),)
    in_use = account(replace(chain, next_ledger=102))
    in_use = replace(in_use, ledgers={**in_use.ledgers, 102: LedgerFacts(102, True, 2, "id")})
    assert problems(in_use) == [(Problem.NEXT_LEDGER, None)]
    assert repair_chain(in_use).next_ledger is None and repair_chain(in_use).removing == ()


def test_removals_that_are_left_and_one_that_must_not_happen() -> None:
    chain = replace(chain_of(2), removing=(RemovedLedger(9, 190), RemovedLedger(0, 102)))
    found = account(chain)
    assert problems(found) == [(Problem.REMOVING_LEFT, 9), (Problem.REMOVING_IN_USE, None)]
    assert repair_chain(found).removing == (RemovedLedger(9, 190),)


def test_cursors_outside_of_the_stream() -> None:
    """SEG-110 cursors before the beginning and beyond the end are told."""
    found = account(chain_of(3).truncate(at(2)), cursors=places({"old": at(1, 1), "new": at(4, 0, 1), "end": at(4)}))
    assert [each.problem for each in find_problems(found)] == [Problem.CURSOR_BEYOND, Problem.CURSOR_BEHIND]
    assert find_problems(found)[1].text == "cursor old is at 1:1:0, and the stream begins at 2:0:0"


def test_entries_that_contradict_each_other_make_no_record() -> None:
    sound = account(chain_of(2))
    scans = {**sound.scans, 2: ScannedSegment(contents(), 5)}
    with pytest.raises(ChainCorruptError):
        decode_chain(encode_chain(repair_chain(replace(sound, scans=scans))))


def test_a_finding_says_what_a_repair_does() -> None:
    finding = Finding(Problem.ORPHAN, "orders", "ledger 5 is nobody's", ledger=5)
    assert finding.repair == "delete the ledger" and not finding.repaired


def test_numbers_that_do_not_fit_the_list_make_no_record() -> None:
    """SEG-19 a record whose next number is in the list already is refused whenever it is read, so no segment starts on
    it, and it stays as it was."""
    chain = chain_of(3)
    with pytest.raises(ChainCorruptError, match="number that is to be used next"):
        decode_chain(encode_chain(replace(chain, next_number=3)))
    assert decode_chain(encode_chain(chain)) == chain


def test_a_gap_in_the_numbers_is_told_from_a_number_that_was_left_out() -> None:
    """SEG-23 a segment that is missing in the middle is noticed by the counter of records; the number of a segment that
    had no record is left out, and that is no gap."""
    chain = chain_of(4)
    with pytest.raises(ChainCorruptError, match="does not begin where segment"):
        decode_chain(encode_chain(replace(chain, recent=(*chain.segments[:1], *chain.segments[2:]))))
    left_out = chain_of(2, opened=True).drop_empty(3).start_segment(200, 0)
    assert [segment.number for segment in decode_chain(encode_chain(left_out)).segments] == [1, 2, 4]
    assert find_problems(account(replace(left_out, removing=()))) == ()
