from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from segments.chain import SegmentContents, SegmentPage, StreamChain, decode_chain, encode_chain
from segments.chain import stream_chain as module
from segments.chain.segment_page import PAGE_SEGMENTS
from segments.chain.stream_chain import FOLD_AT
from segments.errors import ChainStepError, StreamInvariantError, StreamSealedError
from segments.position import EARLIEST, Position
from tests.examples_of import examples
from tests.segments.chain.pages import RECORDS, folded, long_chain, many


def contents(records: int = 3, last_txid: int | None = None) -> SegmentContents:
    if not records:
        return SegmentContents(last_entry=0, bytes=56)
    return SegmentContents(records, 100, records, (records, 0), last_txid, last_txid, 1, 2, None, None, None)


def chain_of(*sizes: int, opened: bool = False) -> StreamChain:
    """Completed segments with ledgers 11, 12, … and these many records."""
    chain = StreamChain("id").claim("a", "n1")
    for at, size in enumerate(sizes):
        chain = chain.start_segment(11 + at, at).complete(1 + at, contents(size), at + 1)
    return chain.start_segment(11 + len(sizes), 99) if opened else chain


def test_each_claim_is_a_new_epoch() -> None:
    """SEG-39 a later owner has a greater epoch, and its own nonce"""
    chain = StreamChain("id").claim("a", "n1", "host:1").claim("b", "n2")
    assert (chain.epoch, chain.owner, chain.nonce, chain.location) == (2, "b", "n2", "")
    assert chain.release().epoch == 2 and chain.release().owner == ""


def test_the_dense_counter_goes_on_over_segments() -> None:
    """SEG-12 dense counter continues across segments, also when older ones were removed"""
    chain = chain_of(3, 0, 4, opened=True)
    assert [segment.start_seq_no for segment in chain.segments] == [0, 3, 3, 7]
    kept = chain.truncate(Position(4, 0, 0), 7).remove(3)
    assert kept.complete(4, contents(1), 100).start_segment(50, 101).segments[-1].start_seq_no == 8


@pytest.mark.rule("C3")
def test_no_segment_starts_while_one_is_open() -> None:
    """SEG-58 at most one in-progress segment"""
    with pytest.raises(ChainStepError, match="open"):
        chain_of(1, opened=True).start_segment(50, 1)


@pytest.mark.rule("C1")
def test_a_ledger_made_in_advance_is_the_next_segments() -> None:
    """SEG-29 a second allocation is refused while one is there"""
    chain = chain_of(1, opened=True).allocate(77)
    assert 77 in chain.ledgers
    with pytest.raises(ChainStepError, match="ready"):
        chain.allocate(78)
    rolled = chain.complete(2, contents(), 5).start_segment(77, 6)
    assert rolled.next_ledger is None and rolled.open_segment is not None and rolled.open_segment.ledger_id == 77


def test_a_ledger_of_a_former_owner_is_to_be_deleted() -> None:
    """SEG-31 a left-over ledger stays named until it is deleted"""
    chain = chain_of(1).allocate(77).claim("b", "n2").discard_next()
    assert chain.next_ledger is None and 77 in chain.ledgers and chain.removing == ((0, 77),)
    assert chain.discard_next() is chain
    assert 77 not in chain.forget([77]).ledgers


@pytest.mark.rule("C1")
def test_no_ledger_is_in_the_chain_twice() -> None:
    chain = chain_of(1)
    with pytest.raises(ChainStepError, match="already"):
        chain.start_segment(11, 5)
    with pytest.raises(ChainStepError, match="already"):
        chain.allocate(11)
    chain = chain_of(2).claim("next", "n")
    known = chain.recent[0].ledger_id
    for ledgers in ([known], [77, 78, 77]):
        with pytest.raises(ChainStepError, match="already"):
            chain.publish([(each, SegmentContents()) for each in ledgers], 0)


@pytest.mark.rule("C7")
def test_a_completed_segment_never_changes() -> None:
    chain = chain_of(3)
    assert chain.complete(1, contents(3), 500) is chain
    for wrong in (contents(4), contents(3, last_txid=1)):
        with pytest.raises(ChainStepError, match="another end"):
            chain.complete(1, wrong, 1)
    with pytest.raises(ChainStepError, match="no segment 9"):
        chain.complete(9, contents(), 1)


def test_an_empty_segment_is_dropped_and_its_number_is_not_used_again() -> None:
    chain = chain_of(3, opened=True).drop_empty(2)
    assert chain.removing == ((2, 12),) and chain.next_number == 3
    assert chain.start_segment(60, 7).segments[-1].number == 3
    with pytest.raises(ChainStepError, match="not open"):
        chain_of(3).drop_empty(1)


def test_the_greatest_transaction_id_is_remembered() -> None:
    """SEG-20 max txid is never lowered"""
    chain = StreamChain("id").start_segment(1, 0).complete(1, contents(2, 9), 1)
    chain = chain.start_segment(2, 0).complete(2, contents(1), 1)
    assert chain.last_txid == 9


def test_truncation_hides_exactly_what_is_before() -> None:
    """SEG-98 truncate: invalid position refused; a position that is not later changes nothing"""
    chain = chain_of(3, 3, opened=True)
    cut = chain.truncate(Position(2, 2, 0), 4)
    assert cut.first_position == (2, 2, 0) and cut.start_seq_no == 4 and len(cut.segments) == 3
    assert cut.truncate(Position(1, 5, 0)) is cut and chain.first_position == EARLIEST
    with pytest.raises(ChainStepError, match="behind the end"):
        chain.truncate(Position(9, 0, 0))


@pytest.mark.rule("C6")
def test_only_wholly_truncated_segments_are_removed() -> None:
    """SEG-100 purge stops at the first not fully truncated segment"""
    chain = chain_of(3, 3, 3, opened=True).truncate(Position(2, 2, 0))
    assert [segment.number for segment in chain.removable()] == [1]
    with pytest.raises(ChainStepError, match="stays"):
        chain.remove(2)
    gone = chain.remove(1)
    assert gone.removing == ((1, 11),) and [segment.number for segment in gone.segments] == [2, 3, 4]
    assert gone.forget([11]).removing == ()
    behind = chain.truncate(Position(2, 3, 1))
    assert [segment.number for segment in behind.removable()] == [1, 2]


def test_the_open_segment_is_never_removed() -> None:
    """SEG-99 in-progress segments are never purged"""
    chain = chain_of(3, opened=True).truncate(Position(3, 0, 0))
    assert [segment.number for segment in chain.removable()] == [1]
    with pytest.raises(ChainStepError, match="stays"):
        chain.remove(2)


def test_who_stands_behind_the_last_record_that_is_gone_reads_on_at_the_next() -> None:
    """A place behind the last record of a segment counted as a place in it."""
    chain = chain_of(3, 0, 3, opened=True)
    assert chain.behind_last(Position(3, 0, 0)) == chain.behind_last(Position(2, 5, 0)) == Position(1, 3, 1)
    assert chain.behind_last(Position(1, 9, 0)) == Position(1, 3, 1) and chain.behind_last(EARLIEST) == EARLIEST
    for inside in (Position(1, 3, 0), Position(3, 1, 0), Position(4, 7, 2)):
        assert chain.behind_last(inside) == inside
    hidden = chain.truncate(chain.behind_last(Position(3, 0, 0)), 3)
    gone = hidden.remove(2).forget([11, 12])
    assert [segment.number for segment in hidden.removable()] == [1, 2]
    assert (hidden.first_position, gone.first_position) == (Position(2, 0, 0), Position(3, 0, 0))
    assert hidden.begin_seq_no == gone.begin_seq_no == 3
    for each in (hidden, gone):
        for place in (Position(1, 3, 1), Position(1, 4, 0), Position(2, 0, 0)):
            assert each.reads_on(place) == max(place, each.first_position) and not each.has_hidden(place, None)
        assert each.reads_on(Position(4, 1, 1)) == Position(4, 1, 1)
        for place in (Position(1, 3, 0), Position(1, 0, 1)):
            assert each.reads_on(place) is None and each.has_hidden(place, None) and each.has_hidden(place, 2)
            assert not each.has_hidden(place, 3), "by its number it has missed nothing"
    assert decode_chain(encode_chain(gone)) == gone
    dropped = chain_of(opened=True).drop_empty(1).start_segment(12, 1)
    assert dropped.reads_on(Position(1, 0, 0)) == Position(2, 0, 0), "nothing was ever hidden"


def test_the_same_within_pages() -> None:
    chain = folded(long_chain(10), 3, 2)
    assert chain.behind_last(Position(4, 0, 0)) == Position(3, 1, 2)
    for number in (2, 3, 6, 7):
        hidden = chain.truncate(Position(number, 1, 2), RECORDS * number)
        assert hidden.first_position == Position(number + 1, 0, 0)
        assert hidden.remove(number).first_position == Position(number + 1, 0, 0)
        unread = decode_chain(encode_chain(hidden))
        shown = Position(number, 1, 2) if number == 2 else Position(number + 1, 0, 0)
        assert unread.first_position == shown, "within a page that was not read nobody knows"


def test_when_everything_is_removed_the_stream_goes_on() -> None:
    """SEG-104 first position never passes what comes next"""
    chain = chain_of(3).truncate(Position(2, 0, 0), 3).remove(1).forget([11])
    assert chain.segments == () and chain.first_position == (2, 0, 0) and chain.last_position is None
    assert chain.start_segment(20, 1).segments[0].start_seq_no == 3


def test_only_so_many_ledgers_wait_to_be_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REMOVING_MAX", 2)
    chain = chain_of(1, 1, 1, opened=True).truncate(Position(4, 0, 0))
    first = chain.remove(chain.removable()[-1].number)
    assert len(first.removing) == 2 and first.removable() == ()
    assert len(first.forget([11]).removable()) == 1


def test_a_record_that_lists_too_many_takes_no_segment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SEGMENTS_MAX", 2)
    with pytest.raises(ChainStepError, match="fold it first"):
        chain_of(1, 1).start_segment(50, 1)


def test_a_record_that_names_too_many_pages_takes_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGES_MAX", 2)
    with pytest.raises(ChainStepError, match="let segments be longer"):
        folded(long_chain(10), 2, 3)


def test_old_segments_move_to_a_page_when_the_record_lists_many() -> None:
    assert long_chain(FOLD_AT - 1).next_page() is None
    page = long_chain(FOLD_AT).next_page()
    assert page is not None and (page.first, page.last, page.epoch) == (1, PAGE_SEGMENTS, 1)
    chain = long_chain(FOLD_AT).fold(page)
    assert len(chain.recent) == FOLD_AT - PAGE_SEGMENTS and chain.next_page() is None
    assert chain.checked().pages[0].value is None  # an owner keeps no page


@pytest.mark.rule("C7")
def test_a_stream_with_pages_is_the_same_stream() -> None:
    plain = long_chain(10).start_segment(50, 1)
    chain = folded(plain, 3, 2).checked()
    assert tuple(chain.segments) == plain.segments and len(chain.recent) == 5
    for told in ("count", "listed_records", "listed_bytes", "first_number", "first_seq_no", "first_position",
                 "last_position", "ledgers", "open_segment"):  # fmt: skip
        assert getattr(chain, told) == getattr(plain, told)
    for number in range(13):
        assert chain.find(number) == plain.find(number) and chain.after(number) == plain.after(number)
    assert chain.with_segments(tuple(chain.segments)) == chain
    other = list(chain.segments)
    other[4] = replace(other[4], ledger_id=7)
    opened = chain.with_segments(other)
    assert opened.pages == chain.pages[:1] and tuple(opened.segments) == tuple(other)


def test_records_that_truncation_hides_are_told_from_those_that_readers_see() -> None:
    plain = long_chain(10).start_segment(50, 1)
    paged = folded(plain, 3, 2)
    assert plain.listed_records == paged.listed_records == 30
    for start, number, hidden in (
        (Position(1, 0, 0), 0, 0),
        (Position(2, 0, 0), 3, 3),
        (Position(2, 0, 1), 4, 4),
        (Position(11, 0, 0), 30, 30),
        (Position(11, 0, 2), 32, 30),  # the others are in the open segment
        (Position(5, 0, 1), None, {plain: 12, paged: 9}),
        (Position(8, 0, 1), None, 21),
        (Position(12, 0, 0), None, 30),
    ):
        for chain in (plain, paged):
            told = replace(chain, start=start, start_seq_no=number).hidden_records
            assert told == (hidden[chain] if isinstance(hidden, dict) else hidden)
    gone = plain.truncate(Position(7, 0, 0), 18).remove(4)
    assert (gone.hidden_records, gone.listed_records) == (6, 18)


def test_a_page_is_named_once_and_only_if_it_holds_the_oldest_segments() -> None:
    chain = long_chain(10)
    page = SegmentPage.of(chain.recent[:3], 1)
    once = chain.fold(page)
    assert once.fold(page) == once  # a step of unknown outcome is made again
    shorter = chain.truncate(Position(3, 0, 0)).remove(1)
    assert shorter.fold(page) == shorter  # somebody removed a segment meanwhile
    assert chain.fold(SegmentPage.of(many(3, 2), 1)) == chain
    assert long_chain(2).fold(page) == long_chain(2)


@pytest.mark.rule("C6")
def test_segments_of_pages_are_removed_one_by_one() -> None:
    plain = long_chain(10).truncate(Position(9, 0, 0))
    for last in range(1, 9):
        kept, expected = folded(long_chain(10), 3, 2).truncate(Position(9, 0, 0)).remove(last), plain.remove(last)
        assert tuple(kept.checked().segments) == tuple(expected.segments) and kept.removing == expected.removing
        assert (kept.listed_records, kept.listed_bytes) == (expected.listed_records, expected.listed_bytes)
        assert (kept.first_seq_no, kept.first_position) == (expected.first_seq_no, expected.first_position)
        with pytest.raises(ChainStepError):
            kept.remove(9)


def test_what_is_in_a_page_that_was_not_read_is_never_taken_for_nothing() -> None:
    chain = decode_chain(encode_chain(folded(long_chain(10), 3)))
    assert chain.last_position == long_chain(10).last_position and chain.find(7) is not None
    for look in (lambda: list(chain.segments), lambda: chain.ledgers, lambda: chain.find(2), chain.removable):
        with pytest.raises(ChainStepError, match="not read"):
            look()
    assert chain.start_segment(7, 1).count == 11  # an owner needs none


@pytest.mark.rule("C4", "C7")
@pytest.mark.parametrize(
    "damage",
    [
        lambda c: replace(c, pages=c.pages[1:2] + c.pages[:1]),
        lambda c: replace(c, pages=c.pages[1:]),
        lambda c: replace(c, pages=c.pages[:1]),
        lambda c: replace(c, recent=()),
        lambda c: replace(c, recent=c.recent[1:]),
        lambda c: replace(c, pages=(replace(c.pages[0], gone=3), *c.pages[1:])),
        lambda c: replace(c, pages=(replace(c.pages[0], first_listed=4), *c.pages[1:])),
        lambda c: replace(c, pages=(replace(c.pages[0], records=8), *c.pages[1:])),
    ],
)
def test_pages_that_break_a_rule_are_noticed(damage: Callable[[StreamChain], StreamChain]) -> None:
    chain = folded(long_chain(10), 3, 2)
    broken = damage(chain)
    if broken.pages == chain.pages[1:]:
        assert broken.checked() == broken  # as if the first page's segments had been removed
        return
    with pytest.raises(StreamInvariantError):
        broken.checked()


def test_a_sealed_stream_takes_nothing() -> None:
    """SEG-51 sealed stream refuses appends; sealing an empty stream works"""
    assert StreamChain("id").seal().sealed
    sealed = chain_of(3).allocate(77).seal()
    assert sealed.seal() == sealed and sealed.removing == ((0, 77),)
    with pytest.raises(StreamSealedError):
        sealed.start_segment(50, 1)
    with pytest.raises(StreamSealedError):
        sealed.allocate(50)
    with pytest.raises(ChainStepError, match="open"):
        chain_of(3, opened=True).seal()


def test_segments_are_found_by_number() -> None:
    chain = chain_of(3, 0, 2)
    assert chain.last_position == (3, 2, 0)
    found, after = chain.find(2), chain.after(2)
    assert found is not None and found.ledger_id == 12 and after is not None and after.number == 3
    assert chain.find(9) is None and chain.after(3) is None


@pytest.mark.rule("C3", "C4", "C7")
@pytest.mark.parametrize(
    "damage",
    [
        lambda s: (s[0], s[0]),
        lambda s: (s[1], s[0]),
        lambda s: (s[0], s[2]),
        lambda s: (s[3], s[0]),
    ],
)
def test_a_chain_that_breaks_a_rule_is_noticed(damage: Callable[..., tuple[object, ...]]) -> None:
    chain = chain_of(3, 3, 3, opened=True)
    with pytest.raises(StreamInvariantError):
        replace(chain, recent=damage(chain.segments)).checked()  # type: ignore[arg-type]


class Lives(RuleBasedStateMachine):
    """Any legal steps in any order keep the rules, and survive their bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.chain = StreamChain("id")
        self.ledger = 0
        self.written: dict[int, int] = {}
        """Number -> records, of all segments that ever were completed."""

    def new_ledger(self) -> int:
        self.ledger += 1
        return self.ledger

    @rule()
    def claim(self) -> None:
        self.chain = self.chain.claim("a", f"n{self.chain.epoch}").discard_next()

    @precondition(lambda self: self.chain.next_ledger is None)
    @rule()
    def allocate(self) -> None:
        self.chain = self.chain.allocate(self.new_ledger())

    @precondition(lambda self: self.chain.open_segment is None)
    @rule()
    def start(self) -> None:
        ahead = self.chain.next_ledger
        self.chain = self.chain.start_segment(self.new_ledger() if ahead is None else ahead, 5)

    @precondition(lambda self: self.chain.open_segment is not None)
    @rule(records=st.integers(0, 5))
    def complete(self, records: int) -> None:
        number = self.chain.segments[-1].number
        self.written[number] = records
        self.chain = self.chain.complete(number, contents(records), 9)

    @precondition(lambda self: self.chain.open_segment is not None)
    @rule()
    def drop(self) -> None:
        self.chain = self.chain.drop_empty(self.chain.segments[-1].number)

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        number = data.draw(st.integers(1, self.chain.next_number))
        entry = data.draw(st.integers(0, 6)) if number < self.chain.next_number else 0
        self.chain = self.chain.truncate(Position(number, entry, 0))

    @rule()
    def remove(self) -> None:
        if gone := self.chain.removable():
            self.chain = self.chain.remove(gone[-1].number)

    @precondition(lambda self: len(self.chain.recent) > 2)
    @rule(data=st.data())
    def fold(self, data: st.DataObject) -> None:
        self.chain = folded(self.chain, data.draw(st.integers(1, len(self.chain.recent) - 2)))

    @precondition(lambda self: self.chain.removing)
    @rule()
    def forget(self) -> None:
        self.chain = self.chain.forget([self.chain.removing[0].ledger_id])

    @invariant()
    def the_rules_hold(self) -> None:
        self.chain.checked()
        assert decode_chain(encode_chain(self.chain)) == self.chain
        assert len(set(self.chain.ledgers)) == len(self.chain.ledgers)
        assert self.chain.records == sum(self.written.values())
        for segment in self.chain.segments:
            before = sum(records for number, records in self.written.items() if number < segment.number)
            assert segment.start_seq_no == before


TestLives = Lives.TestCase
TestLives.settings = settings(max_examples=examples(40), stateful_step_count=25, deadline=None)


def test_a_step_looks_only_at_the_last_two_segments() -> None:
    """A stream may list thousands; the older ones were looked at when they were the last, and are when it is read."""
    chain = chain_of(1, 1, 1, 1, 1)
    first, *others = chain.segments
    odd = replace(chain, recent=(replace(first, start_seq_no=first.start_seq_no + 1), *others))
    with pytest.raises(StreamInvariantError):
        odd.checked()
    assert len(odd.start_segment(9_999, 0).recent) == 6
