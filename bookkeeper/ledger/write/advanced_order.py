"""Puts entries whose ids the caller chooses into order, before they go to the writer.

``AdvancedOrder`` stands in front of a ``LedgerWriter``. An entry above a gap is *held*. When all lower ids are there it
is taken, and the writer gives it the very id that the caller chose. So the writer knows nothing of gaps and keeps what
it promises about order, lengths and fragments: lengths count in id order (R12), and an entry above a gap was never
sent. Payloads stay with the shell: the machine knows ids and sizes.

Rules
    W2   Ids are taken in order, each once; an id that was offered before is refused.
    W12  What is held counts as pending. An id for which there is no room waits in line, and the lowest id goes first.
         The lowest missing id waits only for what the writer has pending, never for what is held above it: so the
         entries above a gap never keep out the one that fills it.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final

from bookkeeper.errors import DuplicateEntryError, check
from bookkeeper.ids import EntryId
from bookkeeper.ledger.write.writer import LedgerWriter

_WITHDRAWN_MAX: Final = 64
"""How many ids of callers who gave up may stay in line before they are dropped."""


class AdvancedOrder:
    """Orders the entries for ``writer``, which gets adds only from here."""

    def __init__(self, writer: LedgerWriter) -> None:
        self._writer = writer
        self.lowest_missing = EntryId(0)
        """The lowest id that was not taken; it may wait in line."""
        self.held_bytes = 0
        """Payload bytes of entries that lie above a gap."""
        self._held: dict[int, int] = {}
        self._line: list[int] = []
        """A heap of the ids that wait for room, some of which may have given up."""
        self._waiting: dict[int, int] = {}

    def __repr__(self) -> str:
        return f"<lowest missing {self.lowest_missing}, {len(self._held)} held, {len(self._waiting)} wait for room>"

    def check_new(self, entry_id: int) -> None:
        """Refuse an id that was given before.

        Raises:
            ValueError: the id is negative.
            DuplicateEntryError: an entry with this id was appended, is held, or waits for room.
        """
        if entry_id < 0:
            raise ValueError(f"an entry id must be 0 or more, not {entry_id}")
        if entry_id < self.lowest_missing or entry_id in self._held or entry_id in self._waiting:
            raise DuplicateEntryError(
                f"entry {entry_id} was appended before, so nothing was sent; the lowest id that is still missing is "
                f"{self.lowest_missing}"
            )

    def has_room(self, entry_id: int) -> bool:
        """Whether there is room for this id now (W12)."""
        writer = self._writer
        if writer.must_wait:
            return False
        if entry_id == self.lowest_missing:
            return True
        return (
            writer.progress.pending_bytes + self.held_bytes < writer.config.pending_bytes_max
            and writer.progress.pending_entries + len(self._held) < writer.config.pending_entries_max
        )

    def hold(self, entry_id: int, size: int) -> None:
        """Hold an id, whether or not there is room. ``take_ready`` returns the ids that may go to the writer."""
        self._held[entry_id] = size
        self.held_bytes += size

    def wait(self, entry_id: int, size: int) -> None:
        """Let an id wait for room, until ``admit`` holds it."""
        self._waiting[entry_id] = size
        heappush(self._line, entry_id)
        if len(self._line) > 2 * len(self._waiting) + _WITHDRAWN_MAX:
            self._line = sorted(self._waiting)  # which is a heap

    def withdraw(self, entry_id: int) -> bool:
        """A caller waits no longer. False: its entry is held or taken already."""
        return self._waiting.pop(entry_id, None) is not None

    @property
    def has_waiters(self) -> bool:
        """Whether any caller waits for room."""
        return bool(self._waiting)

    def forget(self) -> None:
        """Forget what is held or waits: the writer has ended."""
        self._held.clear()
        self._line.clear()
        self._waiting.clear()
        self.held_bytes = 0

    def take_ready(self) -> range:
        """The ids that go to the writer now, in order."""
        first = end = self.lowest_missing
        while (size := self._held.pop(end, None)) is not None:
            self.held_bytes -= size
            end = EntryId(end + 1)
        self.lowest_missing = end
        return range(first, end)

    def admit(self) -> bool:
        """Hold the waiting ids for which there is room now, the lowest first. True: call ``take_ready`` again."""
        admitted = False
        while self._line:
            entry_id = self._line[0]
            if entry_id not in self._waiting:
                heappop(self._line)
            elif not self.has_room(entry_id):
                break
            else:
                heappop(self._line)
                self.hold(entry_id, self._waiting.pop(entry_id))
                admitted = True
        return admitted

    def validate_state(self) -> None:
        """Derive again what must hold between what is held and what waits for room. For tests.

        Raises: InvariantError.
        """
        check(self.held_bytes == sum(self._held.values()), "W12", (self.held_bytes, self))
        lowest = min(self._held.keys() | self._waiting.keys(), default=self.lowest_missing)
        check(self.lowest_missing <= lowest, "W2", (lowest, self))
        check(not self._held.keys() & self._waiting.keys(), "W2", self)
        check(self._waiting.keys() <= set(self._line), "W12", self)
