"""Where the entries are: newer wins, a hole hides nothing, memory is taken for what is there."""

from __future__ import annotations

import random
from array import array
from itertools import combinations

import pytest

from bookkeeper.storage.index.entry_index import (
    LOG_SHIFT,
    OFFSET_MASK,
    PAGE,
    Extent,
    IndexTail,
    LedgerIndex,
    PageCache,
    place,
    trimmed,
)


def q(*values: int) -> array[int]:
    return array("q", values)


def extent(first: int, count: int, segment: int, offset: int = 0) -> Extent:
    return Extent(1, first, count, count, segment, offset, 0)


def written(tail: IndexTail) -> dict[int, int]:
    """What a segment holds once the runs of ``tail`` are in it, later ones over earlier ones."""
    found: dict[int, int] = {}
    for first, places in tail.runs():
        assert 0 < len(places) <= PAGE
        found.update({first + at: value for at, value in enumerate(places) if value})
    return found


def random_steps(tail: IndexTail, rng: random.Random, value: int) -> dict[int, int]:
    """Adds as they may come: in order, with holes, again, far away. What must be known afterwards."""
    known: dict[int, int] = {}
    at = 0
    for _ in range(rng.randrange(1, 60)):
        kind = rng.randrange(5)
        if kind == 0:
            ids = list(range(at, at + rng.randrange(1, 700)))
            places = q(*range(value, value + len(ids)))
            tail.extend(ids[0], places)
        elif kind == 1:
            ids = sorted(rng.sample(range(at, at + 200), rng.randrange(1, 40)))
            places = q(*range(value, value + len(ids)))
            tail.scatter(q(-1, *ids, -1), 1, 1 + len(ids), places)
        else:
            ids = [
                rng.choice([at, max(at - rng.randrange(900), 0), at + rng.randrange(20_000), rng.randrange(1 << 40)])
            ]
            places = q(value)
            tail.put(ids[0], value)
        known.update(zip(ids, places, strict=True))
        value += len(ids)
        if kind < 3:
            at = max(at, ids[-1] + 1)
    return known


def test_a_place_is_a_log_and_an_offset_and_never_0() -> None:
    for log_id, offset in ((1, 0), (1, 4096), (2**23 - 1, 2**40 - 1)):
        found = place(log_id, offset)
        assert found and (found >> LOG_SHIFT, found & OFFSET_MASK) == (log_id, offset)
        q(found)  # fits


@pytest.mark.parametrize("seed", range(40))
def test_a_tail_knows_the_last_place_of_everything_it_was_told_and_nothing_else(seed: int) -> None:
    rng, tail = random.Random(seed), IndexTail()
    known = random_steps(tail, rng, 1)
    assert {entry_id: tail.get(entry_id) for entry_id in known} == known
    near = {entry_id + step for entry_id in known for step in (-1, 1)} - known.keys()
    assert not any(map(tail.get, near))
    assert written(tail) == known, "and so does what a checkpoint writes of it"


@pytest.mark.rule("K16")
@pytest.mark.parametrize("seed", range(20))
def test_a_failed_checkpoint_gives_its_tail_back_under_what_came_since(seed: int) -> None:
    rng, index = random.Random(seed), LedgerIndex()
    known = random_steps(index.tail, rng, 1)
    frozen = index.freeze()
    assert written(frozen) == known and not index.tail
    known |= random_steps(index.tail, rng, 1_000_000)
    assert {entry_id: index.get_recent(entry_id) for entry_id in known} == known
    index.thaw()
    assert index.frozen is None
    assert {entry_id: index.get_recent(entry_id) for entry_id in known} == known
    assert written(index.tail) == known


def test_entries_far_from_each_other_do_not_take_the_memory_between_them() -> None:
    tail = IndexTail()
    for entry_id in (5, 1 << 20, 1 << 40, 1 << 62, 0):
        tail.put(entry_id, entry_id + 1)
    assert [tail.get(entry_id) for entry_id in (0, 5, 1 << 20, 1 << 40, 1 << 62)] == [
        1,
        6,
        (1 << 20) + 1,
        (1 << 40) + 1,
        (1 << 62) + 1,
    ]
    assert sum(len(places) for _, places in tail.runs()) < 10


@pytest.mark.parametrize("seed", range(20))
def test_a_run_from_memory_is_what_single_look_ups_say(seed: int) -> None:
    rng, index = random.Random(seed), LedgerIndex()
    known = random_steps(index.tail, rng, 1)
    if rng.random() < 0.7:
        index.freeze()
        known |= random_steps(index.tail, rng, 1_000_000)
    for entry_id in rng.sample(sorted(known), min(len(known), 40)):
        run = index.recent_run(entry_id, 50)
        assert 1 <= len(run) <= 50
        assert list(run) == [index.get_recent(entry_id + at) for at in range(len(run))]


@pytest.mark.rule("P12", "X32")
@pytest.mark.parametrize("run", [False, True])
def test_the_ids_that_a_client_chooses_do_not_take_memory_for_entries_that_are_not_there(run: bool) -> None:
    """Each hole of up to 4096 entries was filled with zeros: an add of sixty bytes took 32 KiB until the next
    checkpoint, so that twenty megabytes of adds took ten gigabytes."""
    tail = IndexTail()
    if run:
        ids = [at for n in range(500) for at in (n * 4600, n * 4600 + 500)]
        for at in range(0, len(ids), 2):
            tail.scatter(array("q", ids), at, at + 2, array("q", [at + 1, at + 2]))
    else:
        ids = [n * 4096 for n in range(1000)]
        for at, entry_id in enumerate(ids):
            tail.put(entry_id, at + 1)
    assert len(tail.places) < 10 * len(ids) + 2 * 4096
    assert [tail.get(entry_id) for entry_id in ids] == list(range(1, 1001))
    found = {first + at: value for first, places in tail.runs() for at, value in enumerate(places) if value}
    assert found == {entry_id: at for at, entry_id in enumerate(ids, 1)}


def test_the_entries_of_a_striped_ledger_stay_together() -> None:
    """Of six bookies one has a third: those are no strays, which take ten times as much."""
    tail = IndexTail()
    for entry_id in range(0, 60_000, 3):
        tail.put(entry_id, entry_id + 1)
    assert not tail.strays and len(tail.places) == 59_998


def test_a_hole_in_memory_is_not_taken_for_an_entry() -> None:
    index = LedgerIndex()
    index.tail.scatter(q(0, 1, 3), 0, 3, q(10, 11, 13))
    assert list(index.recent_run(0, 10)) == [10, 11]
    assert not index.recent_run(2, 10) and index.get_recent(2) == 0


def test_extents_in_order_leave_one_to_look_into() -> None:
    index = LedgerIndex()
    index.add([extent(0, 512, 1), extent(512, 100, 1, 4096)])
    index.add([extent(700, 10, 2)])
    assert [found.segment for found in index.candidates(611)] == [1]
    assert [found.first for found in index.candidates(705)] == [700]
    assert list(index.candidates(650)) == list(index.candidates(710)) == []
    assert index.plain


def test_overlapping_extents_are_looked_into_from_the_newest_on() -> None:
    index = LedgerIndex()
    index.add([extent(0, 512, 1)])
    index.add([extent(100, 50, 2)])
    index.add([extent(120, 1, 3)])
    assert [found.segment for found in index.candidates(120)] == [3, 2, 1]
    assert [found.segment for found in index.candidates(400)] == [1]
    assert not index.plain, "a run from one of them could hide a newer one"


def test_a_merge_replaces_what_it_merged_and_leaves_the_older_ones() -> None:
    index = LedgerIndex()
    index.add([extent(0, 20, 1)])
    for segment in (2, 3):
        index.add([extent(0, 10, segment)])
    index.replace({2, 3}, [extent(0, 10, 9)])
    assert [found.segment for found in index.candidates(5)] == [9, 1]
    index.replace({1, 9}, [extent(0, 10, 10)])
    assert [found.segment for found in index.candidates(5)] == [10]
    assert index.plain, "in order again"


def test_a_whole_extent_takes_the_place_of_those_that_it_covers() -> None:
    index = LedgerIndex()
    index.add([extent(0, 512, 1), extent(512, 100, 1, 4096), extent(612, 40, 2), extent(1024, 512, 2, 4096)])
    index.add([extent(512, 140, 3)])
    assert index.plain and [found.segment for found in index.extents] == [1, 3, 2]
    assert [found.segment for found in index.candidates(600)] == [3]
    index.add([extent(700, 10, 4)])
    assert index.plain, "it fits between two"
    assert [found.first for found in index.extents] == [0, 512, 700, 1024]
    holes = Extent(7, 0, 512, 500, 5, 0, 0)
    index.add([holes])
    assert [found.segment for found in index.candidates(3)] == [5, 1], "what it does not have the older one may have"


@pytest.mark.parametrize("seed", range(20))
def test_overlapping_extents_come_in_the_order_of_their_age(seed: int) -> None:
    rng, index, all_of_them = random.Random(seed), LedgerIndex(), list[Extent]()
    for segment in range(30):
        first = 512 * rng.randrange(4) + rng.randrange(400)
        all_of_them.append(Extent(7, first, 1 + rng.randrange(112), 0, segment, 0, 0))
        index.add(all_of_them[-1:])
    for begin in range(0, 2048, 37):
        end = begin + rng.choice([1, 100, 512])
        expected = [found for found in all_of_them if found.first < end and found.end > begin]
        got = index.overlapping(begin, end)
        assert sorted(got, key=lambda found: found.segment) == expected
        for older, newer in combinations(got, 2):
            assert older.segment < newer.segment or older.end <= newer.first or newer.end <= older.first


def test_a_moved_page_hides_what_is_older_and_nothing_that_came_since() -> None:
    index = LedgerIndex()
    index.tail.extend(510, q(1, 2, 3, 4))
    frozen = index.freeze()
    page = q(*([0] * 510), 1, 2)
    page[5] = 77
    index.tail.moved[0] = page
    index.tail.put(5, 99)
    assert [index.get_recent(entry_id) for entry_id in (5, 510, 511, 512, 6)] == [99, 1, 2, 3, 0]
    assert not index.plain and index.moved_page(0) is page and index.moved_page(1) is None
    index.thaw()
    assert index.tail is frozen and index.moved_page(0) is page
    assert [index.get_recent(entry_id) for entry_id in (5, 510, 511, 512, 6)] == [99, 1, 2, 3, 0]
    assert written(index.tail) == {5: 99, 510: 1, 511: 2, 512: 3, 513: 4}


def test_nothing_that_a_checkpoint_writes_reaches_over_the_border_of_a_page() -> None:
    tail = IndexTail()
    tail.extend(500, q(*range(1, 1000)))
    for entry_id in range(10_230, 10_250):
        tail.strays[entry_id] = 5
    for first, places in tail.runs():
        assert first // PAGE == (first + len(places) - 1) // PAGE and places[0] and places[-1]


def test_zeros_at_both_ends_are_left_out_and_those_between_stay() -> None:
    assert trimmed(10, q(0, 0, 1 << 40, 0, 1, 0)) == (12, q(1 << 40, 0, 1))
    assert trimmed(10, q(0, 0)) == (12, q())


def test_an_entry_again_in_memory_over_one_on_disk_is_no_plain_index() -> None:
    index = LedgerIndex()
    index.add([extent(0, 10, 1)])
    index.tail.extend(10, q(7, 8))
    plain = [index.plain]
    index.freeze()
    plain.append(index.plain)
    index.tail.put(4, 99)
    assert index.get_recent(4) == 99
    assert [*plain, index.plain] == [True, True, False]


def test_the_pages_least_recently_used_go_first() -> None:
    pages = PageCache(2)
    one, two, three = (extent(0, 1, segment) for segment in (1, 2, 3))
    for number, page in enumerate((one, two), 1):
        pages.put(page, q(number))
    assert pages.get(one) == q(1)
    pages.put(three, q(3))
    assert (pages.get(one), pages.get(two), pages.get(three)) == (q(1), None, q(3))
    assert pages.get(extent(0, 1, 1, offset=4096)) is None, "an extent is its segment and its offset"
