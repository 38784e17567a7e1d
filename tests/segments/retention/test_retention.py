"""Which segments go and why the others stay: every limit, holds, cursors, truncation, and properties of all of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segments.chain import StreamChain
from segments.config import StreamRetention
from segments.position import EARLIEST, LATEST, Position
from segments.retention.holds import Hold
from segments.retention.retention import CursorPosition, ReasonKind, RetentionReport, decide_retention, end_of
from tests.segments.retention.chains import HOUR_MS, at, chain_of, end_of_records

EVERYTHING = StreamRetention()


def decide(
    policy: StreamRetention,
    chain: StreamChain,
    *,
    holds: tuple[Hold, ...] = (),
    cursors: dict[str, Position] | None = None,
    now_h: float = 10.0,
) -> RetentionReport:
    places = [CursorPosition(name, needs) for name, needs in (cursors or {}).items()]
    return decide_retention(policy, chain, holds, places, int(now_h * HOUR_MS))


def gone(report: RetentionReport) -> list[int]:
    return [segment.number for segment in report.going]


def whys(report: RetentionReport, number: int) -> list[ReasonKind]:
    found = next(each for each in report.segments if each.segment.number == number)
    return [reason.why for reason in found.reasons]


def test_without_a_limit_everything_stays() -> None:
    """SEG-104 without a limit nothing goes, with or without cursors; the start stays where it is."""
    report = decide(EVERYTHING, chain_of(4))
    assert gone(report) == [] and report.start == EARLIEST
    assert whys(report, 1) == [ReasonKind.NO_LIMIT] and whys(report, 4) == [ReasonKind.NEWEST, ReasonKind.NO_LIMIT]
    assert gone(decide(EVERYTHING, chain_of(4), cursors={"a": at(3)})) == []


def test_a_limit_of_nothing_leaves_the_newest_segment() -> None:
    """SEG-104 a limit of 0 keeps only the newest segment, and no segment at all is no error; the first readable
    position never passes the last one."""
    for policy in (StreamRetention(max_age_s=0), StreamRetention(max_bytes=0), StreamRetention(max_records=0)):
        report = decide(policy, chain_of(4))
        assert gone(report) == [1, 2, 3] and report.start == at(4)
        assert report.start <= end_of(report.segments[-1].segment)
        assert gone(decide(policy, chain_of(4, opened=True))) == [1, 2, 3, 4]
        assert decide(policy, StreamChain()).segments == ()
        assert gone(decide(policy, chain_of(1, records=0))) == []


def test_age_counts_from_completion() -> None:
    """SEG-102 a segment goes when it was completed longer ago than the limit, at any pass of the timer."""
    policy = StreamRetention(max_age_s=2 * 3600)
    assert gone(decide(policy, chain_of(5), now_h=2.9)) == []
    assert gone(decide(policy, chain_of(5), now_h=3)) == [1]
    report = decide(policy, chain_of(5), now_h=5.5)
    assert gone(report) == [1, 2, 3]
    kept = report.segments[3]
    assert whys(report, 4) == [ReasonKind.AGE] and kept.reasons[0].until_ms == 6 * HOUR_MS
    assert kept.text == "it was completed 90 min ago, and the limit is 2 h: until 1970-01-01 06:00:00 UTC"


def with_times(*hours: float) -> StreamChain:
    """A stream whose segments say that they were completed at these hours."""
    chain = chain_of(len(hours))
    segments = [replace(each, completed_ms=int(h * HOUR_MS)) for each, h in zip(chain.segments, hours, strict=True)]
    return chain.with_segments(segments)


def test_a_clock_that_was_wrong_makes_nothing_old() -> None:
    """A writer whose clock began in 1970 completed segments that went with the next pass, hours after they were
    written."""
    policy = StreamRetention(max_age_s=24 * 3600)
    chain = with_times(100, 0, 0.5, 104, 105)
    assert gone(decide(policy, chain, now_h=106)) == []
    report = decide(policy, chain, now_h=127)
    assert gone(report) == [1] and whys(report, 2) == [ReasonKind.AGE]
    assert report.segments[1].text.startswith("it was completed 23 h ago")
    assert gone(decide(policy, chain, now_h=128)) == [1, 2, 3, 4]
    report = decide(policy, with_times(100, 0, 0.5), now_h=500)
    assert gone(report) == [1] and "its writer's clock was wrong" in report.segments[1].text
    assert report.segments[1].reasons[0].until_ms is None
    assert gone(decide(StreamRetention(max_age_s=24 * 3600, max_records=10), with_times(100, 0, 0.5), now_h=500)) == [
        1,
        2,
    ], "other limits need no clock"
    assert gone(decide(policy, with_times(100, 99.9, 101), now_h=124)) == [1, 2], "clocks differ a little"
    same = decide(policy, with_times(100, 0, 100, 104), now_h=125)
    assert gone(same) == [1, 2, 3], "the next one was completed in the same millisecond"
    ahead = decide(policy, with_times(100, 9000, 101, 102), now_h=500)
    assert gone(ahead) == [1] and whys(ahead, 2) == [ReasonKind.AGE]


def test_a_time_that_has_not_come_is_said_to_be_one() -> None:
    """It said "completed 0 s ago" for years."""
    policy = StreamRetention(max_age_s=24 * 3600)
    chain = with_times(100, 9000, 101, 102)
    kept = decide(policy, chain, now_h=500).segments[1]
    assert kept.text.startswith("by its time it will be completed in 354 d: its writer's clock was ahead")
    assert kept.text.endswith("goes before that: until 1971-01-12 00:00:00 UTC")
    assert kept.reasons[0].until_ms == 9024 * HOUR_MS
    assert decide(policy, chain, now_h=8999.9).segments[1].text.startswith("it was completed 0 s ago"), "a little"
    assert gone(decide(StreamRetention(max_age_s=24 * 3600, max_records=10), chain, now_h=500)) == [1, 2, 3]


@given(st.lists(st.integers(0, 50), max_size=12), st.integers(0, 90))
def test_no_segment_is_older_than_what_follows_it(hours: list[int], now_h: int) -> None:
    report = decide(StreamRetention(max_age_s=3600), with_times(*hours), now_h=now_h)
    for each in report.going:
        later = [hours[number - 1] for number in range(each.number, len(hours) + 1)]
        assert any(hour <= now_h - 1 for hour in later)
        assert max(hours[: each.number]) <= now_h - 1 + 0.2


def test_an_age_that_never_comes_is_explained_without_a_date() -> None:
    report = decide(StreamRetention(max_age_s=1e15), chain_of(2))
    assert gone(report) == [] and report.segments[0].text.endswith("and the limit is 1.16e+10 d")


def test_size_keeps_the_newest_bytes() -> None:
    """SEG-103 at least the newest bytes of the limit stay, never less."""
    assert gone(decide(StreamRetention(max_bytes=2000), chain_of(5))) == [1, 2, 3]
    assert gone(decide(StreamRetention(max_bytes=2001), chain_of(5))) == [1, 2]
    report = decide(StreamRetention(max_bytes=5000), chain_of(5))
    assert gone(report) == [] and report.segments[0].text == "4000 bytes are newer, and the limit is 5000"


def test_count_keeps_the_newest_records() -> None:
    assert gone(decide(StreamRetention(max_records=20), chain_of(5))) == [1, 2, 3]
    assert gone(decide(StreamRetention(max_records=21), chain_of(5))) == [1, 2]
    assert whys(decide(StreamRetention(max_records=21), chain_of(5)), 3) == [ReasonKind.RECORDS]


def test_one_limit_that_is_over_is_enough() -> None:
    policy = StreamRetention(max_age_s=3600 * 100, max_records=10)
    report = decide(policy, chain_of(3))
    assert gone(report) == [1, 2] and whys(report, 1) == [ReasonKind.OVER_RECORDS]


def test_the_first_that_stays_ends_the_pass() -> None:
    """SEG-100 nothing behind a segment that stays is removed."""
    hold = Hold("audit", at(2), at(3))
    report = decide(StreamRetention(max_age_s=0), chain_of(5), holds=(hold,))
    assert gone(report) == [1] and report.start == at(2)
    assert whys(report, 2) == [ReasonKind.HOLD] and whys(report, 3) == [ReasonKind.OLDER_STAYS]
    assert report.segments[1].reasons[0].name == "audit"


def test_without_limits_only_what_is_truncated_goes() -> None:
    """SEG-99 without limits a pass removes what was truncated wholly, and nothing else."""
    chain = chain_of(5).truncate(at(3, 1))
    report = decide(EVERYTHING, chain)
    assert gone(report) == [1, 2] and report.start == at(3, 1)
    assert whys(report, 1) == [ReasonKind.TRUNCATED] and whys(report, 3) == [ReasonKind.NO_LIMIT]


def test_a_segment_is_truncated_only_when_its_last_record_is() -> None:
    """SEG-100 a partly truncated segment stays, with all that follow it."""
    last = chain_of(3).segments[0].last
    assert last is not None
    assert gone(decide(EVERYTHING, chain_of(3).truncate(last))) == []
    assert gone(decide(EVERYTHING, chain_of(3).truncate(last.next))) == [1]


def test_holds_keep_also_what_is_truncated_until_they_expire() -> None:
    chain = chain_of(4).truncate(at(4))
    hold = Hold("backup", at(1), at(2), until_ms=11 * HOUR_MS)
    assert gone(decide(EVERYTHING, chain, holds=(hold,))) == []
    assert gone(decide(EVERYTHING, chain, holds=(hold,), now_h=11)) == [1, 2, 3]


def test_cursors_keep_what_they_have_not_passed() -> None:
    chain, policy = chain_of(5), StreamRetention(max_age_s=0)
    report = decide(policy, chain, cursors={"billing": at(2, 1), "audit": at(4)})
    assert gone(report) == [1] and report.expired_cursors == ()
    assert report.segments[1].text == "cursor billing is at 2:1:0"
    assert gone(decide(StreamRetention(max_age_s=0, cursors="expire"), chain, cursors={"a": at(2)})) == [1, 2, 3, 4]


def test_a_cursor_that_expires_is_named() -> None:
    report = decide(StreamRetention(max_records=10, cursors="expire"), chain_of(3), cursors={"b": at(2), "a": at(3)})
    assert gone(report) == [1, 2] and report.expired_cursors == ("b",)


def test_a_cursor_at_the_end_of_a_segment_has_passed_it() -> None:
    """SEG-105 a segment goes although a cursor's last acknowledged record is its last one."""
    chain = chain_of(3)
    behind_the_last = end_of_records(chain.segments[1])
    assert gone(decide(StreamRetention(max_age_s=0), chain, cursors={"a": behind_the_last})) == [1, 2]
    last = chain.segments[1].last
    assert last is not None and gone(decide(StreamRetention(max_age_s=0), chain, cursors={"a": last})) == [1]


def test_truncation_waits_for_no_cursor() -> None:
    chain = chain_of(3).truncate(at(3))
    report = decide(StreamRetention(consumed=True), chain, cursors={"slow": at(1)})
    assert gone(report) == [1, 2] and report.expired_cursors == ("slow",)


def test_what_is_consumed_goes() -> None:
    """SEG-104 with retention by consumption everything goes that all cursors have passed; without a cursor all but the
    newest segment."""
    policy = StreamRetention(consumed=True)
    report = decide(policy, chain_of(5), cursors={"a": at(4), "b": at(3, 1)})
    assert (
        gone(report) == [1, 2] and whys(report, 1) == [ReasonKind.CONSUMED] and whys(report, 3) == [ReasonKind.CURSOR]
    )
    assert gone(decide(policy, chain_of(5))) == [1, 2, 3, 4]
    kept_longer = StreamRetention(consumed=True, max_age_s=3600 * 100)
    assert gone(decide(kept_longer, chain_of(5), cursors={"a": at(3)})) == [1, 2]


@pytest.mark.parametrize("opened", [False, True])
def test_the_newest_and_the_open_segment_stay(opened: bool) -> None:
    report = decide(StreamRetention(max_age_s=0), chain_of(2, opened=opened).truncate(at(3)))
    assert report.segments[-1].reasons[0].why is (ReasonKind.OPEN if opened else ReasonKind.NEWEST)
    assert not report.segments[-1].goes


def test_the_segment_before_an_empty_one_stays_if_it_tells_of_producers() -> None:
    chain = chain_of(3, opened=True).truncate(at(4))
    assert gone(decide_retention(StreamRetention(), chain, [], [], 0)) == [1, 2, 3]
    report = decide_retention(StreamRetention(), chain, [], [], 0, open_is_empty=True)
    assert gone(report) == [1, 2] and whys(report, 3) == [ReasonKind.NEWEST] and whys(report, 4) == [ReasonKind.OPEN]


limits = st.none() | st.integers(0, 60)


@given(
    st.integers(0, 8),
    st.booleans(),
    st.builds(
        StreamRetention,
        max_age_s=st.none() | st.floats(0, 40_000),
        max_bytes=st.none() | st.integers(0, 9000),
        max_records=limits,
        consumed=st.booleans(),
        cursors=st.sampled_from(["block", "expire"]),
    ),
    st.integers(1, 9),
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), max_size=3),
    st.lists(st.integers(1, 9), max_size=3),
    st.integers(0, 12),
)
def test_what_always_holds(
    count: int,
    opened: bool,
    policy: StreamRetention,
    start: int,
    ranges: list[tuple[int, int]],
    needs: list[int],
    now_h: int,
) -> None:
    """A prefix goes; never the newest, never a held one; nothing unread if cursors block; the start only rises; each
    segment has a reason; the chain takes the step."""
    chain = chain_of(count, opened=opened)
    chain = chain.truncate(at(min(start, chain.next_number)))
    holds = tuple(Hold(str(n), at(a), at(b) if b > a else LATEST) for n, (a, b) in enumerate(ranges))
    cursors = {str(n): at(needed) for n, needed in enumerate(needs)}
    report = decide(policy, chain, holds=holds, cursors=cursors, now_h=now_h)
    goes = [each.goes for each in report.segments]
    assert goes == sorted(goes, reverse=True) and not any(goes[-1:])
    assert report.start >= chain.start and all(each.reasons for each in report.segments)
    assert all(reason.keeps is not each.goes for each in report.segments for reason in each.reasons)
    for segment in report.going:
        assert not any(hold.touches(segment.first, end_of(segment)) for hold in holds)
        if policy.cursors == "block" and end_of(segment) > chain.start:
            assert all(needed >= end_of(segment) for needed in cursors.values())
    if report.going:
        after = chain.truncate(report.start).remove(report.going[-1].number)
        assert len(after.segments) == len(chain.segments) - len(report.going)


def test_the_last_segment_that_tells_of_producers_stays_behind_published_ones() -> None:
    """SEG-104: a published segment says nothing of producers, so the next writer needs the one before."""
    chain = chain_of(4)
    segments = (*chain.segments[:2], *(replace(each, is_published=True) for each in chain.segments[2:]))
    report = decide(StreamRetention(max_records=0), replace(chain, recent=segments))
    assert gone(report) == [1]
    assert whys(report, 2) == [ReasonKind.NEWEST] and whys(report, 4) == [ReasonKind.NEWEST]
