"""Where a fetch goes on, on streams whose segments are damaged, gone, truncated or not there yet, in any order."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from hypothesis import given
from hypothesis import strategies as st

from segments.chain import SegmentContents, StreamChain, StreamSegment
from segments.entries.columns import RecordColumns
from segments.entries.entry import encode_entry, encode_pieces
from segments.position import EARLIEST, LATEST, Position
from segments.read.fetch.fetch_machine import FetchMachine, NoSegment
from segments.record import Gap, GapKind

Plan = list[tuple[str, list[tuple[int, str]]]]
"""Of each segment: what becomes of its ledger; and of each entry, how many records it has, and what becomes of it."""

entries = st.tuples(st.integers(1, 4), st.sampled_from(["good", "good", "damaged", "lost"]))
ledgers = st.sampled_from(["there", "there", "there", "gone"])
plans: st.SearchStrategy[Plan] = st.lists(
    st.tuples(ledgers, st.lists(entries, min_size=1, max_size=5)),
    max_size=5,
)


def entry(first: int, count: int) -> bytes:
    values = [b"%d" % number for number in range(first, first + count)]
    return encode_entry(RecordColumns.of_values(values), first_seq_no=first, append_ms=0)


def chain_of(counts: Sequence[Sequence[int]]) -> StreamChain:
    """Completed segments with entries of so many records."""
    chain = StreamChain(stream_id="s").claim("test", "n")
    for ledger, entries in enumerate(counts, 1):
        last = (len(entries) - 1, entries[-1] - 1)
        contents = SegmentContents(sum(entries), 10, len(entries) - 1, last, None, None, 0, 0, None, None, None)
        chain = chain.start_segment(ledger, 0)
        chain = chain.complete(chain.recent[-1].number, contents, 0)
    return chain


def begun(position: Position = EARLIEST, stop: Position | None = None) -> FetchMachine:
    machine = FetchMachine(position)
    machine.begin(position, stop=stop, parts=None)
    return machine


def next_of(machine: FetchMachine, chain: StreamChain) -> StreamSegment:
    """The segment that is to be opened."""
    segment = machine.next_segment(chain)
    assert isinstance(segment, StreamSegment)
    return segment


def taken(machine: FetchMachine) -> tuple[list[int], list[Gap]]:
    """Everything that is ready: the numbers of records, and gaps."""
    records: list[int] = []
    gaps: list[Gap] = []
    while machine.ready:
        if isinstance(machine.ready.first, Gap):
            gaps.append(machine.ready.take_gap())
        else:
            for found, a, b in machine.ready.take(1000, inf, at_least_one=True):
                records += range(found.first_seq_no + a, found.first_seq_no + b)
    return records, gaps


def read(machine: FetchMachine, chain: StreamChain, segment: StreamSegment, fates: Sequence[tuple[int, str]]) -> None:
    """Read a segment of whose entries some are damaged or lost."""
    machine.entered(segment)
    at = segment.start_seq_no
    for number, (count, fate) in enumerate(fates):
        payload = entry(at, count)
        if number < machine.position.entry:
            pass
        elif fate == "lost":
            machine.on_broken(number, GapKind.LOST, "gone")
        else:
            run = [payload if fate == "good" else payload[:-1] + b"?"]
            assert machine.on_run(segment.number, number, run, number + 1) is None
        at += count
    machine.on_end(segment, chain.find(segment.number))


@given(plans, st.integers(0, 5), st.integers(0, 3), st.integers(0, 5))
def test_every_record_is_handed_out_once_or_told_missing(plan: Plan, start: int, slot: int, cut: int) -> None:
    """SEG-79: also where the stream is truncated while it is read, and where ledgers are gone."""
    chain = chain_of([[count for count, _ in fates] for _, fates in plan])
    at = {segment.number: segment for segment in chain.segments}
    position = Position(start, 0, 0) if start in at else EARLIEST
    begins = at[position.segment].start_seq_no if position.segment in at else 0
    machine = begun(position)
    records: list[int] = []
    gaps: list[Gap] = []
    for turn in range(20):
        if turn == slot and cut in at:
            chain = chain.truncate(at[cut].first, at[cut].start_seq_no)
        if machine.is_truncated(chain):
            machine.pass_truncated(chain, machine.missing_before(chain))
        found = machine.next_segment(chain)
        if found is NoSegment.WAIT:
            break
        if isinstance(found, StreamSegment):
            fate, fates = plan[found.number - 1]
            if fate == "there":
                read(machine, chain, found, fates)
            else:
                machine.on_ledger_deleted(found, chain)
        more, told = taken(machine)
        records, gaps = records + more, gaps + told
    machine.on_confirmed_end(follows=False)
    assert machine.ended and machine.caught_up
    assert records == sorted(set(records)) and all(number >= begins for number in records)
    if all(gap.records is not None for gap in gaps):
        assert len(records) + sum(gap.records or 0 for gap in gaps) == chain.records - begins
    else:
        assert len(records) < chain.records - begins


def test_it_ends_at_its_stop_and_waits_where_nothing_is() -> None:
    chain = chain_of([[3, 3], [2]])
    machine = begun(Position(1, 0, 1), stop=Position(1, 1, 2))
    segment = next_of(machine, chain)
    machine.entered(segment)
    assert machine.on_run(1, 0, [entry(0, 3), entry(3, 3)], 2) is None
    assert taken(machine) == ([1, 2, 3, 4], []) and machine.ended
    assert begun(stop=Position(1, 0, 0)).next_segment(chain) is NoSegment.CONTINUE
    assert begun(Position(3, 0, 0)).next_segment(chain) is NoSegment.WAIT
    machine = begun(Position(3, 0, 0))
    machine.on_confirmed_end(follows=True)
    assert (machine.caught_up, machine.ended) == (True, False)
    machine.restart(LATEST)
    assert (machine.caught_up, machine.resume_seek) == (False, LATEST)


def test_a_segment_that_begins_with_a_later_piece_is_read_anew_from_its_first() -> None:
    pieces = encode_pieces(RecordColumns.of_values([bytes(3_000_000)]), first_seq_no=0, append_ms=0)
    chain = chain_of([[1] * len(pieces)])
    machine = begun(Position(1, 2, 0))
    segment = next_of(machine, chain)
    machine.entered(segment)
    assert machine.on_run(1, 2, pieces[2:], len(pieces)) == 0
    assert taken(machine) == ([], []) and machine.position == Position(1, 2, 0)
    assert machine.on_run(1, 0, pieces, len(pieces)) is None
    assert taken(machine) == ([0], [])


def test_a_ledger_that_is_gone_while_its_segment_is_open_is_waited_for_and_told() -> None:
    chain = chain_of([[2]]).start_segment(9, 0)
    machine = begun(Position(2, 0, 0))
    segment = next_of(machine, chain)
    assert machine.on_ledger_deleted(segment, chain)
    records, (gap,) = taken(machine)
    assert (records, gap.kind, gap.records, machine.position) == ([], GapKind.LOST, None, Position(2, 0, 0))
    dropped = chain.drop_empty(2)
    assert not machine.on_ledger_deleted(segment, dropped)
    assert (taken(machine), machine.position) == (([], []), Position(3, 0, 0))


def test_a_broken_entry_at_the_end_is_told_once_and_makes_the_next_number_unknown() -> None:
    chain = chain_of([[2]]).start_segment(9, 0)
    machine = begun(Position(2, 0, 0))
    segment = next_of(machine, chain)
    machine.entered(segment)
    machine.on_broken(0, GapKind.CORRUPT, "damaged")
    assert machine.report_broken() and not machine.report_broken() and not machine.caught_up
    (gap,) = taken(machine)[1]
    assert (gap.kind, gap.records) == (GapKind.CORRUPT, None)
    assert machine.missing_before(chain) is None
    assert machine.on_run(2, 1, [entry(5, 1)], 2) is None
    assert taken(machine) == ([5], []) and machine.missing_before(chain) == 0


def test_a_fetch_that_begins_within_a_segment_misses_nothing_before_its_place() -> None:
    chain = chain_of([[3, 3]])
    machine = begun(Position(1, 1, 0))
    machine.entered(next_of(machine, chain))
    assert machine.on_run(1, 1, [entry(3, 3)], 2) is None
    assert taken(machine) == ([3, 4, 5], [])


def test_a_truncation_is_told_unless_no_record_is_missing() -> None:
    chain = chain_of([[3], [2]]).truncate(Position(2, 0, 0), 3)
    machine = begun()
    assert machine.is_truncated(chain) and machine.missing_before(chain) is None
    machine.pass_truncated(chain, 3)
    (gap,) = taken(machine)[1]
    assert (gap.kind, gap.records, machine.position) == (GapKind.TRUNCATED, 3, Position(2, 0, 0))
    machine = begun()
    machine.pass_truncated(chain, 0)
    assert taken(machine) == ([], []) and not machine.is_truncated(chain)
