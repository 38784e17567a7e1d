"""The pending adds of a writer, in runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice

from bookkeeper.errors import check


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
