"""The first phase of a recovery: it fences the last fragment, and asks for its last add confirmed.

:class:`FencePhase` ends when ``is_covered``: then no write set of the last fragment can acknowledge an add any more.

Rules
    R2   No recovery read before every write set of the last fragment is covered by fenced bookies (Q3).
    R3   The read itself fences. A bookie counts as fenced only if its answer says so explicitly.
    R4   The last add confirmed begins at the id before the last fragment: lower ids are in earlier fragments.
"""

from __future__ import annotations

from bookkeeper.errors import BookKeeperError, RecoveryInconclusiveError, UnauthorizedError, check
from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger.answer import Answer
from bookkeeper.ledger.config import RecoveryConfig
from bookkeeper.ledger.metadata import LedgerMetadata
from bookkeeper.ledger.recovery.effects import Effect, FenceRead
from bookkeeper.ledger.recovery.parts import reasons


class FencePhase:
    """Fences the last fragment of ``metadata``."""

    def __init__(self, metadata: LedgerMetadata, config: RecoveryConfig) -> None:
        self.lac = EntryId(metadata.last_fragment.first_entry - 1)
        """The highest last add confirmed heard. It does not change once the phase is over (R8)."""
        self.failure: BookKeeperError | None = None
        """Why the phase gave up."""
        self.due: float | None = None
        """When to ask the bookies again that could not be fenced."""
        self.spec = metadata.spec
        self._config = config
        self._ensemble = metadata.last_fragment.ensemble
        self._fenced: set[BookieId] = set()
        self._unfenced: dict[BookieId, BookKeeperError | None] = {}
        """The bookies that gave no usable answer in this round, with their errors."""
        self._rounds = 1

    @property
    def is_covered(self) -> bool:
        """Whether no write set can form an ack quorum of bookies that are not fenced (R2)."""
        return self.spec.covers_ensemble(self._fenced, self._ensemble)

    def begin(self) -> list[Effect]:
        """Ask every bookie of the ensemble."""
        return [FenceRead(bookie) for bookie in self._ensemble]

    def on_answer(
        self, bookie: BookieId, answer: Answer, lac: EntryId | None, now: float, error: BookKeeperError | None
    ) -> None:
        """Take a bookie's answer. Look at ``is_covered``, ``failure`` and ``due`` afterwards."""
        if bookie not in self._ensemble:
            return
        if answer is Answer.UNKNOWN:
            if bookie in self._fenced:
                return
            self._unfenced[bookie] = error
            if isinstance(error, UnauthorizedError) and not self._can_be_covered():
                self.failure = error
                return
        else:
            self._unfenced.pop(bookie, None)
            self._fenced.add(bookie)
            if lac is not None and lac > self.lac:
                self.lac = lac
        if self.is_covered or self.due is not None:
            return
        if len(self._fenced) + len(self._unfenced) == len(self._ensemble):
            self._retry_later(now)

    def _can_be_covered(self) -> bool:
        """Whether the bookies that do not refuse this client suffice: the word of one stops no recovery."""
        refusing = {bookie for bookie, error in self._unfenced.items() if isinstance(error, UnauthorizedError)}
        return self.spec.covers_ensemble(set(self._ensemble) - refusing, self._ensemble)

    def _retry_later(self, now: float) -> None:
        if self._rounds < self._config.rounds_max:
            self.due = now + self._config.retry_ms / 1000
            return
        said = reasons(list(self._unfenced.values()))
        self.failure = RecoveryInconclusiveError(f"too few of the ledger's bookies could be fenced ({said})")

    def on_tick(self, now: float) -> list[Effect]:
        """Time has passed: ask the bookies again that gave no usable answer."""
        if self.due is None or now < self.due:
            return []
        self._rounds += 1
        self.due = None
        again = [bookie for bookie in self._ensemble if bookie in self._unfenced]
        self._unfenced.clear()
        return [FenceRead(bookie) for bookie in again]

    def validate_state(self) -> None:
        """Derive again what must hold between the answers. For tests.

        Raises: InvariantError.
        """
        answered = self._fenced | self._unfenced.keys()
        check(answered <= set(self._ensemble), "R2", (answered, self._ensemble))
        check(not self._fenced & self._unfenced.keys(), "R3", (self._fenced, self._unfenced))
        waits = self.due is not None or self.failure is not None or self.is_covered
        check(waits or len(answered) < len(self._ensemble), "V2", "all have answered, and nothing follows")
