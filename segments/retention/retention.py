"""Decides which segments of a stream may go, and says why each one stays (pure).

A segment goes when it is completed, is not the newest, and is truncated, or consumed, or over a limit of the policy
(age, bytes, records: one is enough). A hold keeps it in any case. A cursor that has not passed it keeps it if the
policy says so; from truncation a cursor protects nothing. Segments go from the oldest on: the first that stays ends the
pass.

    limit None        this limit never lets a segment go; without any limit only what is truncated goes
    limit 0           this limit keeps nothing
    limit N           what is over N goes; with cursors "block" only once all cursors have passed it
    age               since the segment was completed; a time that cannot be, beside those of its neighbours, is no age
    consumed          what all cursors have passed goes, at any age; without a cursor that is everything

The newest segment stays even when it is empty of readable records: the next writer learns from it where the stream
ends, and which producers have written. While the open segment has no entry, it may be the one before it that tells of
producers: then that one stays, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Final

from bookkeeper.amounts import counted
from segments.chain import StreamChain, StreamSegment
from segments.config import StreamRetention
from segments.position import EARLIEST, LATEST, Position
from segments.retention.holds import Hold

CLOCKS_APART_MS: Final = 600_000
"""Clocks of two writers may differ by so much. A segment that says that it was completed longer than this before an
older one was written by a clock that was wrong."""

LAST_MS: Final = 253_402_300_799_999
"""The last millisecond of the year 9999: what lies behind it has no date."""


class ReasonKind(Enum):
    """Why a segment stays or goes."""

    OPEN = "open"
    NEWEST = "newest"
    HOLD = "hold"
    CURSOR = "cursor"
    AGE = "age"
    BYTES = "bytes"
    RECORDS = "records"
    NO_LIMIT = "no limit"
    OLDER_STAYS = "an older one stays"
    TRUNCATED = "truncated"
    OVER_AGE = "over age"
    OVER_BYTES = "over bytes"
    OVER_RECORDS = "over records"
    CONSUMED = "consumed"


KEEPS: Final = frozenset(
    {
        ReasonKind.OPEN,
        ReasonKind.NEWEST,
        ReasonKind.HOLD,
        ReasonKind.CURSOR,
        ReasonKind.AGE,
        ReasonKind.BYTES,
        ReasonKind.RECORDS,
        ReasonKind.NO_LIMIT,
        ReasonKind.OLDER_STAYS,
    }
)
"""The reasons to stay; the others are reasons to go."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason, in words and for programs."""

    why: ReasonKind
    text: str
    name: str | None = None
    """The hold's or the cursor's."""
    until_ms: int | None = None
    """When this reason ends by itself, in milliseconds since 1970; None if that is not known."""

    @property
    def keeps(self) -> bool:
        return self.why in KEEPS


@dataclass(frozen=True, slots=True)
class SegmentReason:
    """What becomes of a segment, and all reasons for it."""

    segment: StreamSegment
    goes: bool
    reasons: tuple[Reason, ...]

    @property
    def text(self) -> str:
        """The reasons in one line."""
        return "; ".join(reason.text for reason in self.reasons)


@dataclass(frozen=True, slots=True)
class CursorPosition:
    """A cursor as retention sees it: it has passed every position before ``needs``."""

    name: str
    needs: Position
    seq_no: int | None = field(default=None, compare=False)
    """The number of the first record that it needs; None: unknown."""


@dataclass(frozen=True, slots=True)
class RetentionReport:
    """The outcome of a pass: every segment with its reasons, oldest first."""

    segments: tuple[SegmentReason, ...]
    start: Position
    """Where readers begin after the pass; never before the start that the chain has."""
    expired_cursors: tuple[str, ...]
    """Cursors that have not passed ``start``, and lose what is before it."""

    @property
    def going(self) -> tuple[StreamSegment, ...]:
        """The segments that go: a prefix."""
        return tuple(each.segment for each in self.segments if each.goes)

    @property
    def first_kept(self) -> SegmentReason | None:
        """The oldest segment that stays."""
        return next((each for each in self.segments if not each.goes), None)


def decide_retention(
    policy: StreamRetention,
    chain: StreamChain,
    holds: Sequence[Hold],
    cursors: Sequence[CursorPosition],
    now_ms: int,
    *,
    all_reasons: bool = True,
    open_is_empty: bool = False,
) -> RetentionReport:
    """Decide about every segment. ``segments`` are in order; ``start`` is the first readable position of ``chain``.

    The same inputs give the same answer; nothing is looked up. ``now_ms`` is milliseconds since 1970. Without
    ``all_reasons`` the report ends with the first segment that stays: those behind it stay in any case.
    ``open_is_empty``: no entry of the open segment is known to be confirmed, and the one before it tells of producers.
    """
    found: list[SegmentReason] = []
    start, newest = chain.start, chain.count - 1 - open_is_empty
    newer_bytes, newer_records = chain.listed_bytes, chain.listed_records
    stopped, hidden = False, start > EARLIEST
    telling = _tells_last(chain.segments)
    completions = _completions(chain.segments)
    for at, segment in enumerate(chain.segments):
        completed_ms = next(completions) if policy.max_age_s is not None else None
        newer_bytes -= segment.bytes
        newer_records -= segment.records
        keeps = _pinned(segment, at == newest, at == telling, holds, now_ms)
        goes: list[Reason] = []
        hidden = hidden and (end_of(segment) <= start or (segment.last is None and not segment.is_open))
        if hidden:
            goes = [Reason(ReasonKind.TRUNCATED, "it is truncated")]
        elif not segment.is_open:
            goes, more = _by_policy(policy, segment, completed_ms, newer_bytes, newer_records, cursors, now_ms)
            keeps += more
        if not keeps and stopped:
            keeps = [Reason(ReasonKind.OLDER_STAYS, "a segment before it stays")]
        stopped = stopped or bool(keeps)
        found.append(SegmentReason(segment, not keeps, tuple(keeps or goes)))
        if stopped and not all_reasons:
            break
    after = without(chain, [each.segment for each in found if each.goes])
    kept = next((each.segment for each in found if not each.goes), None)
    if kept is not None and any(each.goes for each in found):
        start = max(start, kept.first)
    behind = tuple(sorted(cursor.name for cursor in cursors if after.has_hidden(cursor.needs, cursor.seq_no)))
    return RetentionReport(tuple(found), start, behind)


def without(chain: StreamChain, going: Sequence[StreamSegment]) -> StreamChain:
    """The node when readers see none of these segments, its oldest ones, any more. They are still listed."""
    last = next((segment for segment in reversed(going) if segment.last is not None), None)
    return chain if last is None else chain.truncate(end_of(last), last.end_seq_no)


def end_of(segment: StreamSegment) -> Position:
    """The first position behind the segment's records. An open segment has no end: LATEST."""
    if segment.is_open:
        return LATEST
    return segment.first if segment.last is None else segment.last.next


def _tells_last(segments: Sequence[StreamSegment]) -> int | None:
    """The index of the last segment that was not published whole: a published one says nothing of producers. None: all
    were."""
    return next((at for at in range(len(segments) - 1, -1, -1) if not segments[at].is_published), None)


def _pinned(segment: StreamSegment, newest: bool, telling: bool, holds: Sequence[Hold], now_ms: int) -> list[Reason]:
    """Why the segment stays, whatever the policy says. ``telling``: the next writer learns of producers from it."""
    found = []
    if segment.is_open:
        found.append(Reason(ReasonKind.OPEN, "it is open: a writer may append to it"))
    elif newest:
        found.append(Reason(ReasonKind.NEWEST, "it is the newest: the next writer needs it to continue"))
    elif telling:
        found.append(
            Reason(ReasonKind.NEWEST, "the segments behind it were published: it tells the next writer of producers")
        )
    found += [
        Reason(ReasonKind.HOLD, f"{hold.says()} covers it", hold.name, hold.until_ms)
        for hold in holds
        if hold.is_active(now_ms) and hold.touches(segment.first, end_of(segment))
    ]
    return found


def _by_policy(
    policy: StreamRetention,
    segment: StreamSegment,
    completed_ms: int | None,
    newer_bytes: int,
    newer_records: int,
    cursors: Sequence[CursorPosition],
    now_ms: int,
) -> tuple[list[Reason], list[Reason]]:
    """Why the policy lets the segment go, and why it keeps it."""
    over, within = _limits(policy, completed_ms, newer_bytes, newer_records, now_ms)
    waiting = [
        Reason(ReasonKind.CURSOR, f"cursor {cursor.name} is at {cursor.needs}", cursor.name)
        for cursor in cursors
        if cursor.needs < end_of(segment)
    ]
    if policy.consumed:
        if not waiting:
            over.append(Reason(ReasonKind.CONSUMED, "all cursors have passed it" if cursors else "there is no cursor"))
        elif not over:
            within += waiting
    if not over:
        return [], within or [Reason(ReasonKind.NO_LIMIT, "the stream keeps everything: it has no limit")]
    return over, waiting if policy.cursors == "block" else []


def _completions(segments: Sequence[StreamSegment]) -> Iterator[int | None]:
    """When each segment was completed, for certain, in order. None: it is open, or nobody knows.

    A clock that was wrong must not make a segment old. Where one says a time before that of an older segment, the next
    one with a time that can be counts for it: it was completed before that.
    """
    greatest = looked = -1
    later: int | None = None
    for at, segment in enumerate(segments):
        own = segment.completed_ms
        if own is not None and own < greatest - CLOCKS_APART_MS:
            if at > looked:
                looked, later = _next_completion(segments, at + 1, greatest)
            yield later
            continue
        if own is not None:
            own = greatest = max(own, greatest)
        yield own


def _next_completion(segments: Sequence[StreamSegment], at: int, least: int) -> tuple[int, int | None]:
    """The first segment from place ``at`` on that was completed at ``least`` or later, and when; else the end."""
    for place in range(at, len(segments)):
        completed_ms = segments[place].completed_ms
        if completed_ms is not None and completed_ms >= least:
            return place, completed_ms
    return len(segments), None


def _limits(
    policy: StreamRetention, completed_ms: int | None, newer_bytes: int, newer_records: int, now_ms: int
) -> tuple[list[Reason], list[Reason]]:
    """The limits that let the segment go, and those that keep it."""
    over, within = [], []
    if policy.max_age_s is not None and completed_ms is None:
        within.append(
            Reason(
                ReasonKind.AGE,
                "its age is not known: by its time it was completed before an older one, so that its writer's clock "
                "was wrong",
            )
        )
    elif policy.max_age_s is not None and completed_ms is not None:
        limit_ms = int(policy.max_age_s * 1000)
        age_ms, until_ms = now_ms - completed_ms, completed_ms + limit_ms
        said = f"it was completed {_span(age_ms)} ago, and the limit is {_span(limit_ms)}"
        if is_ahead(completed_ms, now_ms):
            said = (
                f"by its time it will be completed in {_span(-age_ms)}: its writer's clock was ahead, or the clock "
                "here is behind. By age neither it nor a later segment goes before that"
            )
        if age_ms >= limit_ms:
            over.append(Reason(ReasonKind.OVER_AGE, said))
        else:
            until = f": until {_time(until_ms)}" if until_ms <= LAST_MS else ""
            within.append(Reason(ReasonKind.AGE, said + until, until_ms=until_ms))
    if policy.max_bytes is not None:
        is_over = newer_bytes >= policy.max_bytes
        said = f"{newer_bytes} bytes are newer, and the limit is {policy.max_bytes}"
        (over if is_over else within).append(Reason(ReasonKind.OVER_BYTES if is_over else ReasonKind.BYTES, said))
    if policy.max_records is not None:
        is_over = newer_records >= policy.max_records
        said = f"{counted(newer_records, 'record', 'is', 'are')} newer, and the limit is {policy.max_records}"
        (over if is_over else within).append(Reason(ReasonKind.OVER_RECORDS if is_over else ReasonKind.RECORDS, said))
    return over, within


def is_ahead(completed_ms: int | None, now_ms: int) -> bool:
    """Whether a segment says that it was completed at a time that has not come yet, farther than clocks differ."""
    return completed_ms is not None and completed_ms > now_ms + CLOCKS_APART_MS


def _span(ms: int) -> str:
    """A length of time for people: 45 s, 3 min, 2.5 h, 4 d."""
    seconds = max(ms, 0) / 1000
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def _time(ms: int) -> str:
    return f"{datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=ms):%Y-%m-%d %H:%M:%S} UTC"
