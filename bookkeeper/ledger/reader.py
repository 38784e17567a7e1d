"""Reading a run of entries: which bookie next, when to try two, when to give up.

``FragmentReader`` reads ``first .. first + count - 1`` of one fragment (only one entry where E > Qw), each entry from
one bookie of its write set at a time.

Rules
    L1  An entry at or below the last add confirmed ends in its bytes or in a transient error, never in "no such
        entry" while a good copy may exist.
    L4  Past the last add confirmed only with ``unconfirmed=True``: then "no such entry" is an answer.
    L5  The shell checks digest and ids before it reports ``on_entries``; a bad copy is reported as unknown
        (``on_failed`` with DigestMismatchError), named by ``ReportCorrupt``, and the other copies are asked.
    L7  When nobody has given it metadata is read anew and those that it names then are asked: repair may have put
        others in the place of those who did not answer. A store that does not answer either keeps nobody from asking
        the bookies again. After an explicit no from every one, metadata read anew, and a no from every one once more,
        the entry is *data missing*.
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
    require_range,
)
from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger.answer import Answer, classify
from bookkeeper.ledger.effects import WakeAt
from bookkeeper.ledger.metadata import LedgerMetadata

__all__ = [
    "AskBookie",
    "Effect",
    "EntriesFound",
    "FailRead",
    "FragmentReader",
    "ReadConfig",
    "RefreshMetadata",
    "ReportCorrupt",
    "WakeAt",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadConfig:
    """Limits of one read."""

    hedge_ms: int = 500
    """No answer for so long: the next bookie is asked too."""
    rounds_max: int = 2
    """How often all replicas are asked before a transient error is raised."""

    def __post_init__(self) -> None:
        require_range(self, "hedge_ms", "rounds_max", least=1)


@dataclass(frozen=True, slots=True)
class AskBookie:
    """Read up to ``count`` entries from ``first`` on from ``bookie``; no key, no fence.

    Report ``on_entries`` (a prefix of them, checked) or ``on_failed``.
    """

    bookie: BookieId
    first: EntryId
    count: int


@dataclass(frozen=True, slots=True)
class EntriesFound:
    """Hand the entries that ``bookie`` gave to the caller: ``first .. first + count - 1``."""

    bookie: BookieId
    first: EntryId
    count: int


@dataclass(frozen=True, slots=True)
class ReportCorrupt:
    """Log, count and tell repair: this copy is bad (L5)."""

    bookie: BookieId
    entry_id: EntryId


@dataclass(frozen=True, slots=True)
class RefreshMetadata:
    """Re-read the ledger's metadata; report ``on_metadata`` or ``on_metadata_failed`` (L7)."""


@dataclass(frozen=True, slots=True)
class FailRead:
    """Tell the caller. Everything before ``first`` was found."""

    first: EntryId
    error: BookKeeperError


Effect = AskBookie | EntriesFound | ReportCorrupt | RefreshMetadata | FailRead | WakeAt


class _Step(Enum):
    IDLE = "idle"
    ASKING = "asking"
    REFRESHING = "refreshing"
    DONE = "done"


class FragmentReader:
    """Reads one run of one fragment. ``order``: the ensemble, nearest or least loaded first (a preference).

    Ends with ``EntriesFound`` of the last entry, or with ``FailRead``.
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
        """The entry that is wanted now."""
        self.end = first + count
        self._bytes_left = bytes_max
        self._step = _Step.IDLE
        self._rounds = 0
        self._looked = False
        """Metadata were read since this entry is wanted."""
        self._looked_after_no = False
        """They were read after every one of its bookies had said no."""
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
        return self._ask_next(now)

    def _ask(self, bookie: BookieId, now: float) -> list[Effect]:
        self._asked.add(bookie)
        self._due = now + self.config.hedge_ms / 1000
        return [AskBookie(bookie, self.first, self.end - self.first), WakeAt(self._due)]

    def _ask_next(self, now: float) -> list[Effect]:
        answered = self._negative | self._unknown.keys()
        for bookie in self._write_set:
            if bookie not in self._asked and bookie not in answered:
                return self._ask(bookie, now)
        return []

    @property
    def done(self) -> bool:
        """The read has ended, one way or the other."""
        return self._step is _Step.DONE

    def on_entries(self, bookie: BookieId, first: int, count: int, now: float, size: int = 0) -> list[Effect]:
        """``bookie`` gave ``count`` entries from ``first`` on (at least one, all checked: L5), of ``size`` bytes, which
        need only be told if there are fewer entries than were asked for."""
        if self._step is not _Step.ASKING or first != self.first or bookie not in self._asked:
            return []  # another bookie was faster
        count = min(count, self.end - first)
        effects: list[Effect] = [EntriesFound(bookie, self.first, count)]
        self.first = EntryId(first + count)
        self._bytes_left -= size
        if self.first == self.end or self._bytes_left <= 0:
            self._step = _Step.DONE
            return effects
        self._forget_answers()
        self._rounds = 1
        self._looked = self._looked_after_no = False
        return effects + self._ask(bookie, now)

    def on_failed(self, bookie: BookieId, first: int, error: BookKeeperError, now: float) -> list[Effect]:
        """``bookie`` gave no entry. DigestMismatchError (or other corruption) means: its copy is bad (L5)."""
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
        effects += self._ask_next(now)
        if not self._asked:
            effects += self._nobody_has_it(now)
        return effects

    def _nobody_has_it(self, now: float) -> list[Effect]:
        """Everyone was asked, nobody gave the entry."""
        if self._unknown:
            if not self._looked:
                self._looked = True
                return self._look()
            return self._ask_unknown_again(now)
        if self._unconfirmed:
            return self._fail(NoSuchEntryError(f"entry {self.first} is on none of its bookies"))
        if not self._looked_after_no:
            self._looked = self._looked_after_no = True
            return self._look()
        names = ", ".join(self._write_set)
        return self._fail(DataMissingError(f"entry {self.first} is confirmed, and on none of its bookies: {names}"))

    def _look(self) -> list[Effect]:
        """The bookies of this fragment may have been swapped by repair."""
        self._step = _Step.REFRESHING
        return [RefreshMetadata()]

    def _ask_unknown_again(self, now: float) -> list[Effect]:
        if self._rounds >= self.config.rounds_max:
            return self._fail(self._most_telling())
        self._rounds += 1
        self._unknown.clear()
        return self._ask_next(now)

    def _most_telling(self) -> BookKeeperError:
        """An error that says more than "unreachable" goes first."""
        errors = list(self._unknown.values())
        return next((e for e in errors if not isinstance(e, BookieUnavailableError)), errors[0])

    def _fail(self, error: BookKeeperError) -> list[Effect]:
        self._step = _Step.DONE
        return [FailRead(self.first, error)]

    def on_metadata(self, metadata: LedgerMetadata, now: float) -> list[Effect]:
        """Metadata as stored now: everyone is asked, once more or for the first time (L7)."""
        if self._step is not _Step.REFRESHING:
            return []
        others = set(metadata.write_set(self.first)) - set(self._write_set)
        self._metadata = metadata
        self._step = _Step.ASKING
        if not others and self._unknown:
            return self._ask_unknown_again(now)
        self._forget_answers()
        self._rounds = 1 if others else self._rounds
        return self._ask_next(now)

    def on_metadata_failed(self, error: BookKeeperError, now: float) -> list[Effect]:
        """The store cannot be reached: the bookies that did not answer may do so now, and else the caller is told
        that; or the ledger was deleted: the caller is told that."""
        if self._step is not _Step.REFRESHING:
            return []
        if not self._unknown or not isinstance(error, (MetadataUnavailableError, SessionExpiredError)):
            return self._fail(error)
        self._step = _Step.ASKING
        return self._ask_unknown_again(now)

    def on_tick(self, now: float) -> list[Effect]:
        """The bookie that was asked last takes long: ask another one, too."""
        if self._step is not _Step.ASKING or self._due is None or now < self._due:
            return []
        self._due = None
        return self._ask_next(now)

    def validate_state(self) -> None:
        """What must hold between any two calls. For tests."""
        assert self.first <= self.end
        assert (self.first < self.end and self._bytes_left > 0) or self.done, "everything is here, and it goes on"
        assert not self._negative & self._unknown.keys(), "one answer is a no and an unknown"
        assert not self._asked & (self._negative | self._unknown.keys()), "asked, and has answered"
        members = set(self._write_set)
        assert self._asked | self._negative | self._unknown.keys() <= members, "an answer of somebody else"
        assert (self._step is _Step.ASKING) <= bool(self._asked), "nobody is asked, and nothing will happen"
        assert (self._step is _Step.REFRESHING) <= (not self._asked), "metadata are read while a bookie may answer"
        assert self._rounds <= self.config.rounds_max or self._step is _Step.IDLE, "more rounds than are allowed"
        assert self._looked or not self._looked_after_no
