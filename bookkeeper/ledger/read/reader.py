"""Decides how a run of entries is read: which bookie is next, when to read from two, when to fail.

``FragmentReader`` reads ``first .. first + count - 1`` of one fragment (only one entry where E > Qw), each entry from
one bookie of its write set at a time.

Rules
    L1  An entry at or below the last add confirmed ends in its bytes or in a transient error, never in "no such
        entry" while a good copy may exist.
    L4  Only a read with ``unconfirmed=True`` may go past the last add confirmed. Then "no such entry" is an answer.
    L5  The shell checks digest and ids before it reports ``on_entries``. It reports a bad copy as unknown
        (``on_failed`` with DigestMismatchError). ``ReportCorrupt`` names the copy, and the other copies are read.
    L7  If no bookie gave the entry, the metadata are read again, and the bookies that they name then are asked: a
        repair may have replaced bookies that did not answer. If the store does not answer either, the bookies are
        still asked again. The entry is *data missing* after an explicit no from every bookie, fresh metadata, and once
        more a no from every bookie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import inf

from bookkeeper.errors import (
    BookieUnavailableError,
    BookKeeperError,
    CorruptionError,
    DataMissingError,
    MetadataUnavailableError,
    NoSuchEntryError,
    SessionExpiredError,
)
from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger.answer import Answer, classify
from bookkeeper.ledger.config import ReadConfig
from bookkeeper.ledger.effects import WakeAt
from bookkeeper.ledger.metadata import LedgerMetadata


@dataclass(frozen=True, slots=True)
class SendRead:
    """Read up to ``count`` entries from ``first`` on from ``bookie``, without key and fence.

    Report ``on_entries`` (a prefix of them, checked) or ``on_failed``.
    """

    bookie: BookieId
    first: EntryId
    count: int


@dataclass(frozen=True, slots=True)
class DeliverEntries:
    """Give the caller the entries ``first .. first + count - 1`` that came from ``bookie``."""

    bookie: BookieId
    first: EntryId
    count: int


@dataclass(frozen=True, slots=True)
class ReportCorrupt:
    """Log and count this bad copy (L5)."""

    bookie: BookieId
    entry_id: EntryId


@dataclass(frozen=True, slots=True)
class RefreshMetadata:
    """Read the ledger's metadata again; report ``on_metadata`` or ``on_metadata_failed`` (L7)."""


@dataclass(frozen=True, slots=True)
class FailRead:
    """Tell the caller that the read failed at ``first``. Everything before was found."""

    first: EntryId
    error: BookKeeperError
    is_absent: bool = False
    """The entry should be confirmed, and so many bookies deny that they have it that no ack quorum can have it."""


Effect = SendRead | DeliverEntries | ReportCorrupt | RefreshMetadata | FailRead | WakeAt


class _Step(Enum):
    IDLE = "idle"
    ASKING = "asking"
    REFRESHING = "refreshing"
    DONE = "done"


class FragmentReader:
    """Reads one run of one fragment. ``order``: the ensemble, nearest or least loaded first (a preference).

    Ends with ``DeliverEntries`` of the last entry, or with ``FailRead``.
    """

    def __init__(
        self,
        metadata: LedgerMetadata,
        first: int,
        count: int = 1,
        *,
        order: Sequence[BookieId] = (),
        unconfirmed: bool = False,
        config: ReadConfig | None = None,
        bytes_max: float = inf,
    ) -> None:
        """``bytes_max``: the run may end early, at one entry or more, once it has so many bytes."""
        assert count == 1 or not metadata.spec.is_striped, "striped entries are read one by one"
        self.config = config or ReadConfig()
        self._metadata = metadata
        self._order = tuple(order)
        self._unconfirmed = unconfirmed
        self.first = EntryId(first)
        """The entry that is read now."""
        self.end = first + count
        self._bytes_left = bytes_max
        self._step = _Step.IDLE
        self._rounds = 0
        self._refreshed = False
        """Whether the metadata were read since the read of this entry began."""
        self._refreshed_after_denial = False
        """Whether they were read after every bookie of the entry had denied it."""
        self._due: float | None = None
        self._forget_answers()

    def __repr__(self) -> str:
        return f"<{self._step.value} {self.first}..{self.end - 1}, asked {sorted(self._asked)}>"

    def _forget_answers(self) -> None:
        write_set = self._metadata.write_set(self.first)
        rank = {bookie: i for i, bookie in enumerate(self._order)}
        self._write_set = tuple(sorted(write_set, key=lambda b: rank.get(b, len(rank))))
        self._asked: set[BookieId] = set()
        self._negative: set[BookieId] = set()
        self._unknown: dict[BookieId, BookKeeperError] = {}

    def start(self, now: float) -> list[Effect]:
        """Begin."""
        self._step = _Step.ASKING
        self._rounds = 1
        return self._send_to_next(now)

    def _send(self, bookie: BookieId, now: float) -> list[Effect]:
        self._asked.add(bookie)
        self._due = now + self.config.hedge_ms / 1000
        return [SendRead(bookie, self.first, self.end - self.first), WakeAt(self._due)]

    def _send_to_next(self, now: float) -> list[Effect]:
        answered = self._negative | self._unknown.keys()
        for bookie in self._write_set:
            if bookie not in self._asked and bookie not in answered:
                return self._send(bookie, now)
        return []

    @property
    def done(self) -> bool:
        """Whether the read has succeeded or failed."""
        return self._step is _Step.DONE

    def on_entries(self, bookie: BookieId, first: int, count: int, now: float, size: int = 0) -> list[Effect]:
        """``bookie`` sent ``count`` entries from ``first`` on, at least one, all checked (L5), with ``size`` bytes
        together. The size matters only if there are fewer entries than were asked for."""
        if self._step is not _Step.ASKING or first != self.first or bookie not in self._asked:
            return []  # another bookie was faster
        count = min(count, self.end - first)
        effects: list[Effect] = [DeliverEntries(bookie, self.first, count)]
        self.first = EntryId(first + count)
        self._bytes_left -= size
        if self.first == self.end or self._bytes_left <= 0:
            self._step = _Step.DONE
            return effects
        self._forget_answers()
        self._rounds = 1
        self._refreshed = self._refreshed_after_denial = False
        return effects + self._send(bookie, now)

    def on_failed(self, bookie: BookieId, first: int, error: BookKeeperError, now: float) -> list[Effect]:
        """``bookie`` sent no entry. DigestMismatchError, or other corruption, means that its copy is bad (L5)."""
        if self._step is not _Step.ASKING or first != self.first or bookie not in self._asked:
            return []
        self._asked.discard(bookie)
        effects: list[Effect] = []
        if isinstance(error, CorruptionError):
            effects.append(ReportCorrupt(bookie, self.first))
        if classify(error) is Answer.NEGATIVE:
            self._negative.add(bookie)
        else:
            self._unknown[bookie] = error
        effects += self._send_to_next(now)
        if not self._asked:
            effects += self._on_none_found(now)
        return effects

    def _on_none_found(self, now: float) -> list[Effect]:
        """Every bookie was asked, and none sent the entry."""
        if self._unknown:
            if not self._refreshed:
                self._refreshed = True
                return self._refresh()
            return self._retry_unknown(now)
        if self._unconfirmed:
            return self._fail(NoSuchEntryError(f"none of its bookies has entry {self.first}"))
        if not self._refreshed_after_denial:
            self._refreshed = self._refreshed_after_denial = True
            return self._refresh()
        names = ", ".join(self._write_set)
        missing = DataMissingError(f"entry {self.first} is confirmed, but none of its bookies has it: {names}")
        return self._fail_with_answers(missing)

    def _refresh(self) -> list[Effect]:
        """Read the metadata: a repair may have replaced bookies of this fragment."""
        self._step = _Step.REFRESHING
        return [RefreshMetadata()]

    def _retry_unknown(self, now: float) -> list[Effect]:
        if self._rounds >= self.config.rounds_max:
            return self._fail_with_answers(self._best_error())
        self._rounds += 1
        self._unknown.clear()
        return self._send_to_next(now)

    def _best_error(self) -> BookKeeperError:
        """The first error that says more than that a bookie cannot be reached, or else the first error."""
        errors = list(self._unknown.values())
        return next((e for e in errors if not isinstance(e, BookieUnavailableError)), errors[0])

    def _fail_with_answers(self, error: BookKeeperError) -> list[Effect]:
        is_absent = not self._unconfirmed and self._metadata.spec.proves_absence(len(self._negative))
        return self._fail(error, is_absent=is_absent)

    def _fail(self, error: BookKeeperError, *, is_absent: bool = False) -> list[Effect]:
        self._step = _Step.DONE
        return [FailRead(self.first, error, is_absent)]

    def on_metadata(self, metadata: LedgerMetadata, now: float) -> list[Effect]:
        """Take the metadata as stored now, and ask their bookies, again or for the first time (L7)."""
        if self._step is not _Step.REFRESHING:
            return []
        others = set(metadata.write_set(self.first)) - set(self._write_set)
        self._metadata = metadata
        self._step = _Step.ASKING
        if not others and self._unknown:
            return self._retry_unknown(now)
        self._forget_answers()
        self._rounds = 1 if others else self._rounds
        return self._send_to_next(now)

    def on_metadata_failed(self, error: BookKeeperError, now: float) -> list[Effect]:
        """The store cannot be reached, or the ledger was deleted. If some bookies gave no answer and only the store is
        away, they are asked again; otherwise the read fails with ``error``."""
        if self._step is not _Step.REFRESHING:
            return []
        if not self._unknown or not isinstance(error, (MetadataUnavailableError, SessionExpiredError)):
            return self._fail(error)
        self._step = _Step.ASKING
        return self._retry_unknown(now)

    def on_tick(self, now: float) -> list[Effect]:
        """Time has passed: if the bookie that was asked last takes long, ask another one, too."""
        if self._step is not _Step.ASKING or self._due is None or now < self._due:
            return []
        self._due = None
        return self._send_to_next(now)

    def validate_state(self) -> None:
        """What must hold between any two calls. For tests."""
        assert self.first <= self.end
        assert (self.first < self.end and self._bytes_left > 0) or self.done, "everything is here, and it goes on"
        assert not self._negative & self._unknown.keys(), "one answer is a no and an unknown"
        assert not self._asked & (self._negative | self._unknown.keys()), "asked, and has answered"
        members = set(self._write_set)
        assert self._asked | self._negative | self._unknown.keys() <= members, "an answer of another bookie"
        assert (self._step is _Step.ASKING) <= bool(self._asked), "no read is pending, and nothing will happen"
        assert (self._step is _Step.REFRESHING) <= (not self._asked), "metadata are read while a bookie may answer"
        assert self._rounds <= self.config.rounds_max or self._step is _Step.IDLE, "more rounds than are allowed"
        assert self._refreshed or not self._refreshed_after_denial
