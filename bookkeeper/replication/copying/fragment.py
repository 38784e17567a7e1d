"""The machine that copies one bookie's share of a fragment to another bookie. It performs nothing; it says what to do.

    read --> write --> verify --> (all runs verified) --> swap --> done
     ^_________________|  not there, or damaged

A copy moves in *runs* of entries. Each run is read from the fragment's bookies, digests checked, written to the target
with the very bytes that were read, and read back from the target, digests checked. When every run was read back, the
target takes the old bookie's place in the metadata, by compare-and-set.

Entries that the target has from an earlier attempt are written again. That the target can read them does not prove that
they are durable: another repairer may have sent them, and they may still be on their way to the disk.

Rules
    A1  The swap comes when every entry was digest-checked on reading, acknowledged by the target (which means durable),
        and read back from it. A copy is complete in its place when every entry was acknowledged or is durable there by
        the word of the bookie, and was read back.
    A2  The swap is a compare-and-set. One that lost is decided again from what is stored: someone else may have
        repaired the same, changed something else, or deleted the ledger. Locks guard nothing here.
    A2b The swap holds only in the incarnation of the target in which all of this was done. A target that was started
        meanwhile may have lost entries, and would deny them. Then everything is copied once more. A copy in place is
        complete only in that incarnation, too: a mark that says what the bookie lacks goes because of it.
    A3  The last fragment of a ledger that is not closed is refused: its writer, or a recovery, may still add to it.
    A4  Silence is unknown. A read or write without an answer is tried again; it never counts as missing, nor as done.
    A5  The old bookie leaves metadata in the very write that brings the target in, never before.
    A6  Nothing past the fragment's end is read or written.

If ``target`` is the bookie in place, its copy is completed and nothing is swapped. Only then the bookie is first asked
which entries it has on its disk (survey), and those are only read back; and at the end, whether it runs as it did then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from bookkeeper.errors import (
    BookieError,
    BookieFailedError,
    BookieReadOnlyError,
    BookieUnavailableError,
    BookKeeperError,
    CorruptionError,
    IllegalOperationError,
    LedgerFencedError,
    UnauthorizedError,
    check,
)
from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger import Answer, LedgerMetadata, classify
from bookkeeper.ledger.effects import WakeAt
from bookkeeper.replication.config import CopyConfig
from bookkeeper.replication.copying.copies import Copy, copy_at
from bookkeeper.replication.copying.throttle import Throttle

__all__ = [
    "ConfirmTarget",
    "CopyConfig",
    "CopyFinished",
    "CopyOutcome",
    "Effect",
    "FragmentCopy",
    "ReadRun",
    "SurveyTarget",
    "SwapBookie",
    "VerifyRun",
    "WakeAt",
    "WriteRun",
]


@dataclass(frozen=True, slots=True)
class SurveyTarget:
    """Ask ``target`` which entries of the ledger it holds, durably: what it lists may still be on its way to the disk.
    Report ``on_surveyed``, with None if it does not say both."""

    target: BookieId


@dataclass(frozen=True, slots=True)
class ReadRun:
    """Read these entries from any good copy (L5) and keep them. Report ``on_read`` or ``on_read_failed``."""

    entries: Sequence[int]


@dataclass(frozen=True, slots=True)
class WriteRun:
    """Send the entries, as they were read, to ``target`` as recovery adds without priority. Report ``on_written`` if
    all were acknowledged, else ``on_write_failed``."""

    target: BookieId
    entries: Sequence[int]


@dataclass(frozen=True, slots=True)
class VerifyRun:
    """Read these entries from ``target`` alone, and check digests and ids. The entries that were kept are not needed
    any more. Report ``on_verified`` or ``on_verify_failed``."""

    target: BookieId
    entries: Sequence[int]


@dataclass(frozen=True, slots=True)
class SwapBookie:
    """Replace ``old`` by ``new`` in ``over`` and write it (:meth:`LedgerMetadata.swap_bookie`).

    The write names the version with which ``over`` was read, and the incarnation of ``new`` in which the copy began.
    Report ``on_target_restarted`` if ``new`` was started since, ``on_stored`` with the metadata that are stored then,
    whoever wrote them, ``on_gone`` if the ledger was deleted, ``on_store_failed`` if the store does not answer."""

    over: LedgerMetadata
    first_entry: EntryId
    old: BookieId
    new: BookieId


@dataclass(frozen=True, slots=True)
class ConfirmTarget:
    """Find out whether ``target`` is in the incarnation in which the copy began. Report ``on_confirmed`` if it is,
    ``on_target_restarted`` if it was started since, ``on_store_failed`` if the store does not answer."""

    target: BookieId


class CopyOutcome(Enum):
    """How a copy ended."""

    SWAPPED = "swapped"
    """The target has taken the old bookie's place."""
    COMPLETED = "completed"
    """The bookie in place has its whole share."""
    OVERTAKEN = "overtaken"
    """Somebody else has replaced the old bookie; nothing is left to do."""
    GONE = "gone"
    """The ledger was deleted."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class CopyFinished:
    """The copy has ended. ``error`` is set when it FAILED."""

    outcome: CopyOutcome
    error: BookKeeperError | None = None
    target_at_fault: bool = False
    """The target is the reason; another target may succeed."""


Effect = SurveyTarget | ReadRun | WriteRun | VerifyRun | SwapBookie | ConfirmTarget | WakeAt | CopyFinished


class _Step(Enum):
    WAITING = "waiting"
    READING = "reading"
    WRITING = "writing"
    VERIFYING = "verifying"


@dataclass(slots=True, eq=False)
class _CopiedRun:
    entries: Sequence[int]
    step: _Step = _Step.WAITING
    next_step: _Step = _Step.READING
    due: float = 0.0
    tries: int = 0
    size: int = 0
    """Bytes that the run takes in the window, known or estimated."""
    acknowledged: bool = False
    """Whether the target has acknowledged the run in this attempt."""


class FragmentCopy:
    """Copies ``copy`` of a ledger to ``target``. Ends with :class:`CopyFinished`.

    Args:
        metadata: the ledger's stored metadata, in which the copy was found.
        entry_bytes: estimated size of an entry; the machine corrects it while it runs.
    """

    def __init__(
        self,
        metadata: LedgerMetadata,
        copy: Copy,
        target: BookieId,
        *,
        throttle: Throttle | None = None,
        config: CopyConfig | None = None,
        entry_bytes: int = 1024,
    ) -> None:
        self.config = config or CopyConfig()
        self.copy = copy
        self.target = target
        self.copied_entries = 0
        """Entries that the target has acknowledged."""
        self.copied_bytes = 0
        self.verified_entries = 0
        self.finished: CopyFinished | None = None
        self._metadata = metadata
        self._throttle = throttle or Throttle()
        self._entry_bytes = max(1, entry_bytes)
        self._held: Container[int] = ()
        self._surveyed = False
        self._rest: Iterator[Sequence[int]] | None = None
        self._runs: dict[int, _CopiedRun] = {}
        """Runs that were begun and are not verified, by their first entry."""
        self._brought = False
        """Whether every run was begun."""
        self._again: deque[_CopiedRun] = deque()
        """Runs that wait for their next try."""
        self._swapping = False
        self._lives = 1
        """In how many incarnations of the target the copy was begun."""

    def __repr__(self) -> str:
        return f"<{self.copy} to {self.target}: {self.verified_entries} verified, {len(self._runs)} runs under way>"

    @property
    def _in_place(self) -> bool:
        """Whether the bookie's own copy is completed."""
        return self.target == self.copy.bookie

    # -- beginning ----------------------------------------------------------------------------------------

    def start(self, now: float) -> list[Effect]:
        """Begin the copy. Returns the first effects."""
        problem = self._refusal(self._metadata)
        if problem is not None:
            return [problem]
        if self._in_place:
            return [SurveyTarget(self.target)]
        return self.on_surveyed(None, now)

    def _refusal(self, metadata: LedgerMetadata) -> CopyFinished | None:
        """The end, if by the stored metadata nothing may or need be done; else None."""
        copy = self.copy
        now = copy_at(metadata, copy.first_entry, copy.position)
        if now is None:
            return self._fail(IllegalOperationError(f"the ledger has no fragment that begins at {copy.first_entry}"))
        if now.bookie == self.target != copy.bookie:
            return self._finish(CopyFinished(CopyOutcome.SWAPPED))
        if now.bookie != copy.bookie:
            return self._finish(CopyFinished(CopyOutcome.OVERTAKEN))
        if not now.is_decided:
            return self._fail(
                LedgerFencedError(
                    f"{now}: the ledger is {metadata.state.name}, so entries may still be added to its last fragment; "
                    "recover it first (bk ledger recover)"
                )
            )
        check(copy.end in (None, now.end), "M3", f"{copy} now ends at {now.end}")
        if self.target != copy.bookie and self.target in metadata.fragment_of(copy.first_entry).ensemble:
            error = IllegalOperationError(f"{self.target} is in the ensemble of the fragment at {copy.first_entry}")
            return self._fail(error, target_at_fault=True)
        return None

    def on_surveyed(self, held: Container[int] | None, now: float) -> list[Effect]:
        """The bookie in place holds these entries. None: it does not say, so everything is copied (A4)."""
        if self.finished or self._surveyed:
            return []
        self._surveyed = True
        self._held = held if held is not None else ()
        return self._go_on(now)

    # -- runs ---------------------------------------------------------------------------------------------

    def _go_on(self, now: float) -> list[Effect]:
        """Begin every run that may begin now, or the swap when no run is left."""
        if self.finished or not self._surveyed:
            return []
        effects: list[Effect] = []
        for _ in range(len(self._again)):
            run = self._again.popleft()
            if run.due > now:
                self._again.append(run)
            elif run.next_step is not _Step.READING or self._may_read(now):
                self._begin(run, effects, now)
            else:
                self._again.append(run)
        while self._may_read(now) and not self._again and (entries := self._next()):
            run = _CopiedRun(entries, size=len(entries) * self._entry_bytes)
            if all(entry in self._held for entry in entries):
                run.next_step = _Step.VERIFYING
            self._runs[entries[0]] = run
            self._begin(run, effects, now)
        if not self._runs and self._brought:
            return effects + self._swap()
        self._wake(now, effects)
        return effects

    def _next(self) -> Sequence[int]:
        spec = self._metadata.spec
        if self._rest is None:
            most = self.config.striped_run_entries_max if spec.is_striped else self.config.run_entries_max
            fit = max(1, min(most, self.config.run_bytes // self._entry_bytes))
            self._rest = self.copy.runs(spec, fit)
        entries = next(self._rest, ())
        self._brought = not entries
        return entries

    def _may_read(self, now: float) -> bool:
        if len(self._runs) >= self.config.runs_max + len(self._again) or self._throttle.ready_at(now) > now:
            return False
        return sum(run.size for run in self._runs.values() if run.step is not _Step.WAITING) < self.config.window_bytes

    def _begin(self, run: _CopiedRun, effects: list[Effect], now: float) -> None:
        run.step = run.next_step
        match run.step:
            case _Step.READING:
                self._throttle.spend(run.size, now)
                effects.append(ReadRun(run.entries))
            case _Step.WRITING:
                effects.append(WriteRun(self.target, run.entries))
            case _:
                effects.append(VerifyRun(self.target, run.entries))

    def _wake(self, now: float, effects: list[Effect]) -> None:
        """Ask for a wake-up if something waits for time alone."""
        due = [run.due for run in self._again if run.due > now]  # the others wait for room
        ready = self._throttle.ready_at(now)
        if ready > now:
            due.append(ready)
        if due:
            effects.append(WakeAt(max(min(due), now + 0.001)))

    def _run(self, first: int, step: _Step) -> _CopiedRun | None:
        run = self._runs.get(first)
        return run if run is not None and run.step is step and not self.finished else None

    def on_read(self, first: int, size: int, now: float, count: int | None = None) -> list[Effect]:
        """The run that begins with ``first`` was read, and every digest checked; it has ``size`` bytes. ``count``: only
        so many of its entries were read, because they are larger than estimated; the rest becomes a run of its own."""
        if (run := self._run(first, _Step.READING)) is None:
            return []
        self._throttle.spend(size - run.size, now)  # its guess was spent when it was asked for
        run.size = size
        rest = run.entries[count:] if count is not None else ()
        run.entries = run.entries[: len(run.entries) - len(rest)]
        self._entry_bytes = max(1, size // len(run.entries))
        if rest:
            later = _CopiedRun(rest, due=now, size=len(rest) * self._entry_bytes)
            self._runs[rest[0]] = later
            self._again.append(later)
        effects: list[Effect] = []
        run.next_step = _Step.WRITING
        self._begin(run, effects, now)
        return effects + self._go_on(now)

    def on_written(self, first: int, now: float) -> list[Effect]:
        """The target has acknowledged every entry of the run, so they are durable there (A1)."""
        if (run := self._run(first, _Step.WRITING)) is None:
            return []
        run.acknowledged = True
        self.copied_entries += len(run.entries)
        self.copied_bytes += run.size
        run.next_step = _Step.VERIFYING
        effects: list[Effect] = []
        self._begin(run, effects, now)
        return effects + self._go_on(now)

    def on_verified(self, first: int, now: float) -> list[Effect]:
        """Every entry of the run was read back from the target, and its digest checked."""
        if (run := self._run(first, _Step.VERIFYING)) is None:
            return []
        held = self._in_place and all(entry in self._held for entry in run.entries)
        check(run.acknowledged or held, "A1", f"entries from {first} on were not acknowledged by {self.target}")
        self.verified_entries += len(run.entries)
        del self._runs[first]
        return self._go_on(now)

    # -- failures -----------------------------------------------------------------------------------------

    def on_read_failed(self, first: int, error: BookKeeperError, now: float) -> list[Effect]:
        """No good copy of the run could be read now. That is unknown, not missing (A4)."""
        run = self._run(first, _Step.READING)
        if run is None:
            return []
        hopeless = not isinstance(error, BookieError | CorruptionError) or isinstance(error, UnauthorizedError)
        return self._try_again(run, _Step.READING, error, now, hopeless=hopeless, target_at_fault=False)

    def on_write_failed(self, first: int, error: BookKeeperError, now: float) -> list[Effect]:
        """The target did not acknowledge all of the run. Some of it may be there; writing it again is harmless."""
        run = self._run(first, _Step.WRITING)
        if run is None:
            return []
        hopeless = isinstance(error, BookieReadOnlyError | UnauthorizedError)
        return self._try_again(run, _Step.WRITING, error, now, hopeless=hopeless, target_at_fault=True)

    def on_verify_failed(self, first: int, error: BookKeeperError, now: float) -> list[Effect]:
        """Not all of the run could be read back. After a clear denial or damage it is copied anew, else read again. A
        bookie reports damage of what it has had for long as a failure of its own."""
        run = self._run(first, _Step.VERIFYING)
        if run is None:
            return []
        rot = isinstance(error, BookieFailedError) and self._in_place
        anew = rot or classify(error) is Answer.NEGATIVE or isinstance(error, CorruptionError)
        step = _Step.READING if anew else _Step.VERIFYING
        return self._try_again(run, step, error, now, hopeless=False, target_at_fault=True)

    def _try_again(
        self,
        run: _CopiedRun,
        step: _Step,
        error: BookKeeperError,
        now: float,
        *,
        hopeless: bool,
        target_at_fault: bool,
    ) -> list[Effect]:
        run.tries += 1
        if hopeless or run.tries >= self.config.tries_max:
            return [self._fail(error, target_at_fault=target_at_fault)]
        run.step, run.next_step = _Step.WAITING, step
        run.due = now + self.config.retry_ms / 1000
        self._again.append(run)
        return self._go_on(now)

    def on_tick(self, now: float) -> list[Effect]:
        """Time has passed."""
        return self._go_on(now)

    # -- the swap -----------------------------------------------------------------------------------------

    def _swap(self) -> list[Effect]:
        wanted = self.copy.held(self._metadata.spec)
        check(self.verified_entries == wanted, "A1", f"{self.verified_entries} of {wanted} entries are verified")
        if self._swapping:
            return []
        self._swapping = True
        if self._in_place:
            return [ConfirmTarget(self.target)]
        return [SwapBookie(self._metadata, self.copy.first_entry, self.copy.bookie, self.target)]

    def on_stored(self, metadata: LedgerMetadata, now: float) -> list[Effect]:
        """These metadata are stored after a swap was tried, whether it was done, lost, or not answered (A2, M8)."""
        if self.finished or not self._swapping or self._in_place:
            return []
        if (end := self._refusal(metadata)) is not None:
            return [end]
        self._metadata, self._swapping = metadata, False
        return self._swap()

    def on_confirmed(self) -> list[Effect]:
        """The bookie in place runs as it did when the copy was begun."""
        if self.finished or not self._swapping or not self._in_place:
            return []
        return [self._finish(CopyFinished(CopyOutcome.COMPLETED))]

    def on_target_restarted(self, now: float) -> list[Effect]:
        """The target was started since the copy was begun (A2b). What it acknowledged or said before proves nothing
        about what it has now, so everything is copied once more, in its present incarnation."""
        if self.finished or not self._swapping:
            return []
        self._lives += 1
        if self._lives > self.config.target_lives_max:
            error = BookieUnavailableError(f"{self.target} was started again and again while entries were copied to it")
            return [self._fail(error, target_at_fault=True)]
        self._swapping = self._brought = False
        self._rest = None
        self.verified_entries = 0
        if self._in_place:
            self._surveyed = False
            return [SurveyTarget(self.target)]
        return self._go_on(now)

    def on_gone(self, now: float) -> list[Effect]:
        """The ledger was deleted; nothing is left to repair."""
        return [] if self.finished else [self._finish(CopyFinished(CopyOutcome.GONE))]

    def on_store_failed(self, error: BookKeeperError, now: float) -> list[Effect]:
        """The store does not answer: the swap may have been done. The next repair of this copy finds out."""
        return [] if self.finished else [self._fail(error)]

    # -- the end ------------------------------------------------------------------------------------------

    def _fail(self, error: BookKeeperError, *, target_at_fault: bool = False) -> CopyFinished:
        return self._finish(CopyFinished(CopyOutcome.FAILED, error, target_at_fault))

    def _finish(self, end: CopyFinished) -> CopyFinished:
        self.finished = end
        self._runs.clear()
        self._again.clear()
        return end
