"""A writer's progress: which entries were appended, which of them are acknowledged, and which confirmed.

    0 ... last_add_confirmed ... last_acknowledged | pending ... | next_entry
          others may read        callers know        sent          not given yet

Without deferred sync the first two are the same.

Rules
    W2   Entries are acknowledged in id order, each once.
    W3   ``last_add_confirmed`` is the highest confirmed id and never falls; packets carry at most that.
    W12  What is pending is counted, in entries and in bytes.
    W16  When the last add confirmed has moved and nothing is pending, it is sent on its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice

from bookkeeper.errors import check
from bookkeeper.ids import NO_ENTRY, EntryId


class PendingAdds:
    """A run of pending adds."""

    __slots__ = ("bytes", "deadline", "end", "first", "sizes")

    def __init__(self, first: int, sizes: Sequence[int], deadline: float) -> None:
        self.first = first
        self.end = first + len(sizes)
        self.sizes: Sequence[int] = sizes
        self.bytes = sum(sizes)
        self.deadline = deadline

    def cut(self, upto: int) -> int:
        """Drop the entries below ``upto``. Returns how many bytes they have."""
        count = upto - self.first
        dropped = sum(islice(self.sizes, count))
        self.sizes = self.sizes[count:]
        self.first = upto
        self.bytes -= dropped
        return dropped


class PendingQueue(deque[PendingAdds]):
    """All pending adds of a writer in runs, without gaps, the oldest first."""

    def drop_below(self, end: int) -> int:
        """Drop the entries below ``end``. Returns their payload bytes."""
        dropped = 0
        while self and self[0].first < end:
            run = self[0]
            if run.end <= end:
                dropped += run.bytes
                self.popleft()
            else:
                dropped += run.cut(end)
        return dropped

    def validate_state(self, first: int, following: int | None, payload_bytes: int) -> None:
        """Derive again that the runs are ``first .. following - 1`` and have so many bytes. For tests.

        Raises: InvariantError.
        """
        end = first
        for run in self:
            check(run.first == end < run.end, "W2", (run.first, run.end - 1, end - 1))
            sizes = (len(run.sizes), sum(run.sizes))
            check(sizes == (run.end - run.first, run.bytes), "W12", (run.first, run.end - 1, sizes))
            end = run.end
        check(following is None or end == following, "W2", (end, following))
        pending = sum(run.bytes for run in self)
        check(payload_bytes == pending, "W12", (payload_bytes, pending))


class WriterProgress:
    """The entries of one writer. The writer alone moves it; its parts look at it."""

    __slots__ = (
        "acknowledged_length",
        "lac_sent",
        "last_acknowledged",
        "last_add_confirmed",
        "next_entry",
        "pending",
        "pending_bytes",
    )

    def __init__(self) -> None:
        self.next_entry = EntryId(0)
        """The id of the next append."""
        self.last_acknowledged: EntryId = NO_ENTRY
        """The highest id whose caller was answered: the last add confirmed, or above it with deferred sync (W11)."""
        self.acknowledged_length = 0
        """Payload bytes of entries 0 .. last_acknowledged."""
        self.last_add_confirmed: EntryId = NO_ENTRY
        """The highest id that others may read (W3)."""
        self.lac_sent: EntryId = NO_ENTRY
        """The highest last add confirmed that was sent, with an add or on its own (W16)."""
        self.pending = PendingQueue()
        """What was appended and is not acknowledged; empty once the writer has failed it."""
        self.pending_bytes = 0
        """Payload bytes of ``pending``."""

    @property
    def pending_entries(self) -> int:
        """Entries appended and not acknowledged."""
        return self.next_entry - self.last_acknowledged - 1

    @property
    def deadline(self) -> float | None:
        """When the oldest pending entry is too late; None: nothing is pending."""
        return self.pending[0].deadline if self.pending else None

    @property
    def unpublished_lac(self) -> EntryId | None:
        """The last add confirmed, if nothing has carried it and no pending add will (W16)."""
        return self.last_add_confirmed if self.last_add_confirmed > self.lac_sent and not self.pending else None

    def append(self, sizes: Sequence[int], deadline: float) -> None:
        """Take a run, whose packets carry the last add confirmed as of now."""
        run = PendingAdds(self.next_entry, sizes, deadline)
        self.pending.append(run)
        self.pending_bytes += run.bytes
        self.next_entry = EntryId(run.end)
        self.lac_sent = self.last_add_confirmed  # which never falls

    def acknowledge(self, end: int) -> None:
        """Everything below ``end`` is acknowledged."""
        dropped = self.pending.drop_below(end)
        self.pending_bytes -= dropped
        self.acknowledged_length += dropped
        self.last_acknowledged = EntryId(end - 1)

    def drop_pending(self) -> tuple[EntryId, int]:
        """Forget what is pending. Returns its first id and how many entries there are."""
        self.pending.clear()
        self.pending_bytes = 0
        return EntryId(self.last_acknowledged + 1), self.pending_entries

    def validate_state(self, *, is_open: bool) -> None:
        """Derive again what must hold between the fields. For tests.

        Args:
            is_open: nothing pending was failed, so that all of it is in ``pending``.

        Raises: InvariantError.
        """
        in_order = NO_ENTRY <= self.last_add_confirmed <= self.last_acknowledged < self.next_entry
        check(in_order, "W3", (self.last_add_confirmed, self.last_acknowledged, self.next_entry))
        check(self.lac_sent <= self.last_add_confirmed, "W3", (self.lac_sent, self.last_add_confirmed))
        following = self.next_entry if is_open else None
        self.pending.validate_state(self.last_acknowledged + 1, following, self.pending_bytes)
