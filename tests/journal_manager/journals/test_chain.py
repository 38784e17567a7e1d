"""A journal's node: its only legal transitions, and its bytes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journal_manager import (
    FencingToken,
    JournalCorruptionError,
    JournalFencedError,
    NamespaceInfo,
    SegmentExistsError,
    SegmentInfo,
    SegmentMismatchError,
    SegmentNotFoundError,
    TxId,
)
from journal_manager.edits.discarded_edits import NOTHING_DISCARDED, Cut
from journal_manager.errors import JournalInvariantError, UnsupportedLayoutError, UpgradeError
from journal_manager.journals.capabilities import CopySource
from journal_manager.journals.chain import Chain, UpgradePoint, purgeable

EMPTY = Chain(NamespaceInfo(1, "c", "p")).claim("me", "n1")
MINE = EMPTY.token


def segment(first: int, last: int | None = None) -> SegmentInfo:
    return SegmentInfo(TxId(first), None if last is None else TxId(last), 1, 1, f"{first}")


def grown(*ends: tuple[int, int]) -> Chain:
    chain = EMPTY
    for first, last in ends:
        chain = chain.begin(MINE, segment(first)).finish(MINE, TxId(first), TxId(last))
    return chain


@pytest.mark.rule("C5")
def test_an_overtaken_token_changes_nothing() -> None:
    chain = grown((1, 5)).claim("you")
    assert chain.token == FencingToken(2, "you")
    for step in (
        lambda: chain.begin(MINE, segment(6)),
        lambda: chain.finish(MINE, TxId(1), TxId(5)),
        lambda: chain.drop(MINE, TxId(1)),
        lambda: chain.purge(MINE, TxId(9)),
        lambda: chain.cleared(MINE, NamespaceInfo()),
        lambda: chain.discard(MINE, 1),
        lambda: chain.begin_upgrade(MINE, chain.namespace),
        lambda: chain.finalize_upgrade(MINE),
        lambda: chain.roll_back(MINE),
    ):
        with pytest.raises(JournalFencedError):
            step()


def test_two_claims_of_one_epoch_differ_in_bytes() -> None:
    assert EMPTY.claim("x", "n2").encode() != EMPTY.claim("x", "n3").encode()


@pytest.mark.rule("C3", "C7")
def test_segments_join_one_by_one() -> None:
    chain = grown((1, 5), (6, 9))
    for first in (0, 1, 9, 11):
        with pytest.raises(SegmentExistsError):
            chain.begin(MINE, segment(first))
    chain = chain.begin(MINE, segment(10))
    assert chain.open_segment == segment(10) and chain.last_txid == 9
    with pytest.raises(SegmentExistsError):
        chain.begin(MINE, segment(10))


@pytest.mark.rule("C7")
def test_a_final_segment_keeps_its_end() -> None:
    chain = grown((1, 5))
    assert chain.finish(MINE, TxId(1), TxId(5)) == chain
    with pytest.raises(SegmentMismatchError):
        chain.finish(MINE, TxId(1), TxId(4))
    with pytest.raises(SegmentNotFoundError):
        chain.finish(MINE, TxId(2), TxId(5))
    with pytest.raises(SegmentNotFoundError):
        chain.drop(MINE, TxId(1))


def test_a_dropped_segment_frees_its_ids() -> None:
    chain = grown((1, 5)).begin(MINE, segment(6)).drop(MINE, TxId(6))
    assert chain == grown((1, 5))
    chain.begin(MINE, segment(6))


@pytest.mark.rule("C6")
@given(st.lists(st.integers(1, 9), max_size=8), st.booleans(), st.integers(1, 60))
def test_purge_takes_a_prefix_below_and_never_the_newest(sizes: list[int], is_open: bool, below: int) -> None:
    chain, first = EMPTY, 1
    for size in sizes:
        chain = chain.begin(MINE, segment(first)).finish(MINE, TxId(first), TxId(first + size - 1))
        first += size
    if is_open:
        chain = chain.begin(MINE, segment(first))
    rest, gone = chain.purge(MINE, TxId(below))
    assert gone + rest.segments == chain.segments
    assert all(s.last is not None and s.last < below for s in gone)
    assert bool(rest.segments) == bool(chain.segments)
    if len(rest.segments) > 1:
        assert rest.segments[0].last is not None and rest.segments[0].last >= below
    assert purgeable(rest.segments, TxId(below)) == ()


@given(st.lists(st.integers(1, 9), max_size=5), st.text(max_size=5))
def test_bytes(sizes: list[int], owner: str) -> None:
    chain, first = EMPTY.claim(owner, owner), 1
    for size in sizes:
        chain = chain.begin(chain.token, segment(first)).finish(chain.token, TxId(first), TxId(first + size - 1))
        first += size
    assert Chain.decode(chain.encode()) == chain


@pytest.mark.rule("C3", "C7")
def test_bytes_that_are_no_record_or_break_a_rule_are_refused() -> None:
    for data in (b"", b"{}", b"\xff", b"[1]", EMPTY.encode()[:-2]):
        with pytest.raises(JournalCorruptionError):
            Chain.decode(data)
    newer = json.loads(EMPTY.encode())
    newer["format"] = 5
    with pytest.raises(UnsupportedLayoutError, match="format 5"):
        Chain.decode(json.dumps(newer).encode())
    for segments in ((segment(1, 5), segment(7, 9)), (segment(1), segment(2, 3))):
        with pytest.raises(JournalInvariantError):
            Chain.decode(replace(EMPTY, segments=segments).encode())


@pytest.mark.rule("C7")
def test_discarding_takes_whole_segments_from_the_end_and_leaves_one() -> None:
    chain = grown((1, 5), (6, 9), (10, 12))
    assert chain.discard(MINE, 13) == (chain, ())
    shorter, gone = chain.discard(MINE, 6)
    assert [s.first for s in shorter.segments] == [1] and [s.first for s in gone] == [6, 10]
    for first in (1, 2, 7):
        with pytest.raises(SegmentMismatchError):
            chain.discard(MINE, first)
    with pytest.raises(SegmentExistsError):
        chain.begin(MINE, segment(13)).discard(MINE, 13)
    assert EMPTY.discard(MINE, 1) == (EMPTY, ())


NEWER = replace(EMPTY.namespace, layout_version=2)


def test_an_upgrade_remembers_where_it_began_and_goes_back_there() -> None:
    chain = grown((1, 5)).begin_upgrade(MINE, NEWER)
    assert chain.namespace == NEWER and chain.upgrade == UpgradePoint(EMPTY.namespace, 5)
    assert chain.begin_upgrade(MINE, NEWER) == chain
    later = chain.begin(MINE, segment(6)).finish(MINE, 6, 9)
    assert later.purge(MINE, 9) == (later, ())
    assert later.needs_snapshot(5) and not later.needs_snapshot(6) and not grown((1, 5)).needs_snapshot(5)
    back, gone = later.roll_back(MINE)
    assert replace(back, discarded=NOTHING_DISCARDED) == grown((1, 5)) and [s.first for s in gone] == [6]
    assert back.discarded.cuts == (Cut(6, 1),)
    final = later.finalize_upgrade(MINE)
    assert final.upgrade is None and final.namespace == NEWER and final.finalize_upgrade(MINE) == final
    emptied, _ = EMPTY.begin_upgrade(MINE, NEWER).begin(MINE, segment(3)).finish(MINE, 3, 4).roll_back(MINE)
    assert replace(emptied, discarded=NOTHING_DISCARDED) == EMPTY and emptied.discarded.cuts == (Cut(3, 1),)
    assert chain.roll_back(MINE) == (grown((1, 5)), ()), "nothing was written since, so nothing is discarded"
    assert later.cleared(MINE, NEWER).upgrade is None
    for refused in (
        lambda: later.begin_upgrade(MINE, NEWER),
        lambda: later.discard(MINE, 1),
        lambda: grown((1, 4), (5, 5)).begin_upgrade(MINE, NEWER).discard(MINE, 5),
        lambda: final.roll_back(MINE),
        lambda: final.begin_upgrade(MINE, EMPTY.namespace),
        lambda: grown((1, 5)).begin(MINE, segment(6)).begin_upgrade(MINE, NEWER),
        lambda: chain.begin(MINE, segment(6)).roll_back(MINE),
    ):
        with pytest.raises(UpgradeError):
            refused()


@pytest.mark.rule("J10", "C7")
def test_what_is_discarded_is_noted_by_the_same_step_and_its_ids_are_of_a_later_epoch() -> None:
    """Only the segments were taken out of the record: nothing told later edits from those that had their ids."""
    chain, _ = grown((1, 5), (6, 9), (10, 12)).discard(MINE, 6)
    assert chain.discarded.cuts == (Cut(6, 1),) and chain.discarded.journal == "n1"
    with pytest.raises(SegmentExistsError, match="open the journal anew"):
        chain.begin(MINE, segment(6))
    chain = chain.claim("you", "n2")
    later = chain.begin(chain.token, replace(segment(6), epoch=2)).finish(chain.token, 6, 8)
    again, _ = later.discard(chain.token, 6)
    assert again.discarded.cuts == (Cut(6, 2),) and again.discarded.journal == "n1"
    again = again.claim("she", "n3").cleared(FencingToken(3, "she"), EMPTY.namespace)
    assert again.discarded.cuts == (Cut(1, 3),)
    assert not EMPTY.cleared(MINE, EMPTY.namespace).discarded, "nobody has had it before"


def test_only_a_record_with_an_upgrade_or_with_cuts_is_kept_from_earlier_programs() -> None:
    chain = grown((1, 5))
    assert json.loads(chain.encode())["format"] == 1 and "upgrade" not in json.loads(chain.encode())
    upgrading = chain.begin_upgrade(MINE, NEWER)
    assert json.loads(upgrading.encode())["format"] == 2
    assert Chain.decode(upgrading.encode()) == upgrading
    assert upgrading.finalize_upgrade(MINE).encode() == replace(chain, namespace=NEWER).encode()
    cut, _ = grown((1, 5), (6, 9)).discard(MINE, 6)
    for newest in (cut, cut.begin_upgrade(MINE, NEWER), chain.copied(MINE, CopySource("another", 7))):
        assert json.loads(newest.encode())["format"] == 3
        assert Chain.decode(newest.encode()) == newest
    assert cut.copied(MINE, CopySource("another", 7)).cleared(MINE, NEWER).copy is None
    with pytest.raises(JournalCorruptionError):
        Chain.decode(cut.encode().replace(b"[[6,1]]", b"[[6]]"))


@pytest.mark.rule("X18")
def test_a_password_is_in_a_format_of_its_own_that_earlier_programs_refuse() -> None:
    chain = replace(grown((1, 5)), password=b"\x00\xffsecret")
    assert Chain.decode(chain.encode()) == chain and "secret" not in repr(chain)
    assert json.loads(chain.encode())["format"] == 4
    assert chain.claim("you").password == chain.cleared(MINE, NamespaceInfo()).password == chain.password
    assert json.loads(grown((1, 5)).encode())["format"] == 1
    without = json.loads(chain.encode())
    del without["password"]
    with pytest.raises(JournalCorruptionError):
        Chain.decode(json.dumps(without).encode())
