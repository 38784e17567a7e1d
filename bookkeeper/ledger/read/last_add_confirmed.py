"""How far a reader may read: from what entries carry, from what a covering set of bookies says, and from long polls.

Rules
    L3  A reader's last add confirmed never falls, never passes what the writer confirmed, and is the last id once the
        ledger is closed. An entry raises it to the value *in* the entry, never to the entry's own id.
        What a bookie says in a field without a digest is *hearsay*. With a digest that has a key it raises nothing.
        With another one it does, and is withdrawn when the entries that it tells of are provably not there.
    L9  A long poll ends within its time, and misses no advance that happened before it began.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bookkeeper.errors import BookieUnavailableError, BookKeeperError, UnauthorizedError, check
from bookkeeper.ids import NO_ENTRY, BookieId, EntryId
from bookkeeper.ledger.answer import Answer
from bookkeeper.ledger.metadata import LedgerMetadata
from bookkeeper.ledger.quorum import QuorumSpec


class KnownLac:
    """The last add confirmed that one reader knows (L3). Report to it everything that was heard, in any order."""

    __slots__ = ("closed_at", "proven", "value")

    def __init__(self, metadata: LedgerMetadata) -> None:
        self.value: EntryId = NO_ENTRY
        self.proven: EntryId = NO_ENTRY
        """The part of it that is not hearsay."""
        self.closed_at: EntryId | None = None
        self.on_metadata(metadata)

    def __repr__(self) -> str:
        return f"KnownLac({self.value}{', closed' if self.closed_at is not None else ''})"

    def on_proven(self, lac: int | None) -> bool:
        """A last add confirmed arrived, in a checked entry or blob. True if it is news."""
        if self.closed_at is not None or lac is None or lac <= self.proven:
            return False
        self.proven = EntryId(lac)
        return self.on_hearsay(lac)

    def on_hearsay(self, lac: int) -> bool:
        """A bookie says that so much is confirmed. True if it is news."""
        if self.closed_at is not None or lac <= self.value:
            return False
        self.value = EntryId(lac)
        return True

    def on_absent(self, entry_id: int) -> bool:
        """So many bookies deny that they have this entry that it cannot be confirmed. True if nothing but hearsay said
        that it is; what is not proven is withdrawn."""
        if self.closed_at is not None or entry_id <= self.proven:
            return False
        self.value = self.proven
        return True

    def on_metadata(self, metadata: LedgerMetadata) -> bool:
        """Metadata arrived. True if they are news. A fragment begins right after the last add confirmed of its time
        (W5), so that its first id tells that; a closed ledger tells its end."""
        if not metadata.is_closed:
            return self.on_proven(metadata.last_fragment.first_entry - 1)
        check(self.proven <= metadata.last_entry, "L3", f"read up to {self.proven}, closed at {metadata.last_entry}")
        news = self.closed_at is None
        self.value = self.proven = self.closed_at = metadata.last_entry
        return news

    def validate_state(self) -> None:
        """What must hold between any two calls. For tests."""
        assert self.value >= self.proven >= NO_ENTRY
        assert self.closed_at is None or self.value == self.closed_at, "a closed ledger is read to another end"


class LacByCoverage:
    """The question to all bookies of the last fragment. It is answered once those that replied cover it (Q3).

    The answer is then not below any last add confirmed that the writer had told bookies before the question, and never
    above what was confirmed.
    """

    def __init__(self, spec: QuorumSpec, ensemble: Sequence[BookieId], floor: int = NO_ENTRY) -> None:
        self._spec = spec
        self._ensemble = tuple(ensemble)
        self._known: set[BookieId] = set()
        self._unknown: set[BookieId] = set()
        self._refusing: set[BookieId] = set()
        """Those of them that do not serve this client."""
        self._error: BookKeeperError | None = None
        self._floor = floor
        self.value = EntryId(floor)

    def on_answer(
        self, bookie: BookieId, answer: Answer, lac: int | None, error: BookKeeperError | None = None
    ) -> None:
        """Take an answer. A positive one carries a last add confirmed; a negative one (the bookie has nothing) counts,
        too."""
        if bookie not in self._ensemble:
            return
        if answer is Answer.UNKNOWN:
            if bookie not in self._known:
                self._unknown.add(bookie)
                if isinstance(error, UnauthorizedError):
                    self._refusing.add(bookie)
            if self._error is None or isinstance(error, UnauthorizedError):
                self._error = error
            return
        self._known.add(bookie)
        self._unknown.discard(bookie)
        self._refusing.discard(bookie)
        if lac is not None and lac > self.value:
            self.value = EntryId(lac)

    @property
    def is_covered(self) -> bool:
        """Whether :attr:`value` is the answer."""
        return bool(self._known) and self._spec.covers_ensemble(self._known, self._ensemble)

    @property
    def error(self) -> BookKeeperError | None:
        """Why there will be no answer: too many refuse this client, or all have answered and too few of them know."""
        others = set(self._ensemble) - self._refusing
        if self._refusing and not self._spec.covers_ensemble(others, self._ensemble):
            return self._error
        if self.is_covered or len(self._known | self._unknown) < len(self._ensemble):
            return None
        return self._error or BookieUnavailableError("too few bookies answered with a last add confirmed")

    def validate_state(self) -> None:
        """What must hold between any two calls. For tests."""
        assert self.value >= self._floor, "it knows less than before it asked"
        assert not self._known & self._unknown, "a bookie told, and did not"
        assert self._known | self._unknown <= set(self._ensemble), "a stranger is counted"
        assert not self.is_covered or self.error is None
        assert self._refusing <= self._unknown, "a bookie refuses, and told"
        if len(self._known | self._unknown) == len(self._ensemble):
            assert self.is_covered or self.error is not None, "all have answered, and nothing comes of it"


@dataclass(frozen=True, slots=True)
class Poll:
    """Ask ``bookie`` to answer when its last add confirmed exceeds ``previous_lac``, within ``timeout_ms``."""

    bookie: BookieId
    previous_lac: EntryId
    timeout_ms: int


class LongPoll:
    """Decides which bookies to ask, and when to stop, in one round of waiting for news.

    Any bookie may be the only one that knows of the newest add. So a round asks one after the other, and ends within
    ``timeout_ms`` in all (L9). Each question names the last add confirmed that is known *now*. A bookie that knows more
    answers at once, so that nothing is missed that happened before the question.
    """

    def __init__(self, ensemble: Sequence[BookieId], timeout_ms: int, slice_ms: int = 1_000) -> None:
        self._order = tuple(ensemble)
        self._timeout_ms = timeout_ms
        self._slice_ms = slice_ms
        self._turn = 0
        self._latest: Poll | None = None

    def next(self, known: KnownLac, elapsed_ms: int) -> Poll | None:
        """The next question; None when the round is over: there is news, the ledger is closed, or time is up."""
        left = self._timeout_ms - elapsed_ms
        if left <= 0 or known.closed_at is not None:
            return None
        bookie = self._order[self._turn % len(self._order)]
        self._turn += 1
        self._latest = Poll(bookie, known.value, min(left, self._slice_ms))
        return self._latest

    def validate_state(self) -> None:
        """What must hold between any two calls. For tests."""
        latest = self._latest
        if latest is None:
            assert self._turn == 0
            return
        assert latest.bookie == self._order[(self._turn - 1) % len(self._order)], "not one after the other"
        assert 0 < latest.timeout_ms <= min(self._timeout_ms, self._slice_ms), "longer than the round (L9)"
