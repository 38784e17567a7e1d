"""What a client has written last, for its own readers.

The writer of a ledger is the first to know what is confirmed. Readers of the same client wait for its word, and take
what it appended a moment ago from memory: nothing is asked of a bookie for them. That is how a gateway hands out the
records that it appends. A reader that is further behind, and every reader once the writer has ended, asks bookies.

    writer:  keep --> confirm --> end
    reader:  follow --> run_at ... until the writer ends

Pure: no task and no clock.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from bookkeeper.ids import NO_ENTRY, EntryId
from bookkeeper.seams import Buffer

TAIL_BYTES: Final = 1 << 20
"""Payload bytes of one ledger that are kept at most, while somebody follows it."""


class _Run(NamedTuple):
    """Payloads of consecutive entries."""

    first: int
    payloads: Sequence[bytes]
    size: int
    """Their bytes."""


class TailCache:
    """The newest entries of one ledger. Entries are kept from when the first reader follows, and while one does."""

    __slots__ = ("_followers", "_runs", "_size", "ended", "last_add_confirmed")

    def __init__(self) -> None:
        self.last_add_confirmed: EntryId = NO_ENTRY
        """As the writer knows it; it never falls."""
        self.ended = False
        """Whether the writer has ended. It confirms nothing more, and nothing is kept."""
        self._followers: dict[object, Callable[[], None]] = {}
        self._runs: deque[_Run] = deque()
        """Each begins behind the one before; the newest need not be confirmed."""
        self._size = 0

    # -- the writer ---------------------------------------------------------------------------------------

    def keep(self, first: int, payloads: Sequence[Buffer]) -> None:
        """The writer sends a run. A payload that its owner may still change is copied."""
        if not self._followers or self.ended:
            return
        kept = [payload if type(payload) is bytes else bytes(payload) for payload in payloads]
        run = _Run(first, kept, sum(map(len, kept)))
        self._runs.append(run)
        self._size += run.size
        while self._size > TAIL_BYTES:
            self._size -= self._runs.popleft().size

    def confirm(self, last_add_confirmed: EntryId) -> None:
        """Everything up to here is confirmed."""
        if last_add_confirmed > self.last_add_confirmed:
            self.last_add_confirmed = last_add_confirmed
            self._notify()

    def end(self) -> None:
        """The writer has ended. Idempotent."""
        if not self.ended:
            self.ended = True
            self._forget()
            self._notify()

    # -- its readers --------------------------------------------------------------------------------------

    def follow(self, on_news: Callable[[], None]) -> Callable[[], None]:
        """Call ``on_news`` whenever something is confirmed, and when the writer ends. Call what is returned to leave;
        that is idempotent."""
        key = object()
        self._followers[key] = on_news

        def leave() -> None:
            if self._followers.pop(key, None) is not None and not self._followers:
                self._forget()

        return leave

    def run_at(self, entry: int, count_max: int | None = None) -> list[bytes]:
        """The payloads of ``entry`` and of what follows it, as far as they are confirmed and kept; else empty."""
        end = self.last_add_confirmed + 1
        if count_max is not None:
            end = min(end, entry + count_max)
        if entry >= end or not self._runs or entry < self._runs[0].first:
            return []
        found: list[bytes] = []
        for number in range(bisect_right(self._runs, entry, key=lambda run: run.first) - 1, len(self._runs)):
            first, payloads, _ = self._runs[number]
            if first >= end:
                break
            found += payloads[max(0, entry - first) : end - first]
        return found

    # -- inside -------------------------------------------------------------------------------------------

    def _notify(self) -> None:
        for on_news in list(self._followers.values()):
            on_news()

    def _forget(self) -> None:
        self._runs.clear()
        self._size = 0

    def validate_state(self) -> None:
        """What must hold between any two calls. For tests."""
        assert self._size == sum(run.size for run in self._runs) <= TAIL_BYTES, "bytes are miscounted"
        assert not self._runs or (self._followers and not self.ended), "entries are kept for nobody"
        ends = [run.first + len(run.payloads) for run in self._runs]
        assert ends[:-1] == [run.first for run in self._runs][1:], "runs do not follow each other"


class TailCaches:
    """The ledgers that one client writes now."""

    __slots__ = ("_by_ledger",)

    def __init__(self) -> None:
        self._by_ledger: dict[int, TailCache] = {}

    def __len__(self) -> int:
        return len(self._by_ledger)

    def begin(self, ledger_id: int) -> TailCache:
        """A writer begins."""
        cache = self._by_ledger[ledger_id] = TailCache()
        return cache

    def end(self, ledger_id: int) -> None:
        """Its writer has ended. Idempotent."""
        if (cache := self._by_ledger.pop(ledger_id, None)) is not None:
            cache.end()

    def get(self, ledger_id: int) -> TailCache | None:
        """None: this client does not write the ledger."""
        return self._by_ledger.get(ledger_id)
