"""Copies what a disk has lost back from the other bookies, so that its ledgers become whole again.

Of a ledger in limbo (:mod:`~bookkeeper.bookie.identity.limbo_ledgers`), in doubt
(:mod:`~bookkeeper.bookie.identity.stale_adds`) or suspect (:mod:`~bookkeeper.bookie.identity.suspect_repairs`) this
bookie may have lost something. It is whole when it is closed and the bookie has read and verified
everything that its metadata say is here. This module checks that. If entries are missing, repair copies them from the
other bookies of the ledger's fragments, one ledger at a time and not faster than ``completion_bytes_per_s``. Then all
of the ledger is read once more: a copy that was made proves nothing, entries that can be read do.

This module never closes a ledger, never changes metadata, and never says that an entry does not exist. An open ledger
stays as it is until its writer, or whoever recovers it, has closed it.

Repair belongs to a higher floor. Only its name is known here; it is loaded when something has to be copied.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from typing import Final, Protocol

from bookkeeper.amounts import counted
from bookkeeper.bookie.config import BookieConfig
from bookkeeper.errors import BookKeeperError, MetadataFormatError, NoSuchLedgerError, in_words
from bookkeeper.ids import BookieId, EntryId, LedgerId, some_of
from bookkeeper.ledger import LedgerMetadata
from bookkeeper.meta import Metadata
from bookkeeper.metrics import Metrics
from bookkeeper.seams import Seams
from bookkeeper.storage.engine import PackedEntries
from bookkeeper.volumes import Volumes

log = logging.getLogger(__name__)

COMPLETER: Final = "bookkeeper.replication.repairs.peer_completer:PeerCompleter"

BATCH_BYTES: Final = 1 << 20
"""Bytes of one read when a copy is verified."""

GAPS_MAX: Final = 100_000
"""Runs of missing entries of one fragment that one pass collects; the next pass finds the others."""

_NAP_S: Final = 0.02
"""Reading that has a limit pauses for at least so many seconds."""

NAMED_MAX: Final = 5
"""Ledgers that a sentence for people names at most."""


@dataclass(frozen=True, slots=True)
class MissingEntries:
    """Entries of one fragment that this bookie should have and cannot read, ascending."""

    first_entry: EntryId
    """The fragment's first entry, which names it."""
    position: int
    """This bookie's place in its ensemble."""
    entries: tuple[range, ...]

    @property
    def count(self) -> int:
        """How many entries are missing."""
        return sum(map(len, self.entries))


class Completer(Protocol):
    """Copies entries from other bookies to this one."""

    async def complete(
        self, ledger_id: LedgerId, gaps: Sequence[MissingEntries], on_copied: Callable[[int, int], None]
    ) -> None:
        """Copy the entries to this bookie. ``on_copied`` gets (entries, bytes) when they are durable here.

        Raises:
            BookKeeperError: some entries could not be copied now.
        """

    async def close(self) -> None:
        """Let go of connections. Idempotent."""


MakeCompleter = Callable[[BookieId, Metadata, BookieConfig, Seams], Completer]


class Completion:
    """Completes the ledgers of one bookie. Runs on the loop's thread."""

    def __init__(
        self,
        engine: Volumes,
        metadata: Metadata,
        bookie: BookieId,
        config: BookieConfig,
        seams: Seams,
        metrics: Metrics,
    ) -> None:
        self._engine = engine
        self._metadata = metadata
        self._bookie = bookie
        self._config = config
        self._seams = seams
        self._completer: Completer | None = None
        self._entries = metrics.counter(
            "completion_entries_total", "Entries that this bookie had lost and copied from other bookies."
        )
        self._bytes = metrics.counter("completion_bytes_total", "Bytes of those entries.")
        self._turn = asyncio.Lock()
        """Held while a ledger is copied, and while it is read if there is no limit to that: one ledger at a time."""
        self._now = ""
        """What is being copied, as a sentence for people."""
        self._not_closed: set[LedgerId] = set()
        self._reasons: dict[LedgerId, str] = {}
        """Closed ledgers that are not whole yet, each with the reason."""

    def sentences(self) -> tuple[str, ...]:
        """What is being copied, and what keeps other ledgers from becoming whole: sentences for people."""
        said = [self._now] if self._now else []
        if open_ := list(self._not_closed):
            said.append(
                f"{_ledgers(open_)}: entries that were lost here are copied from other bookies once {_they(open_)} "
                "closed, by the writer or by a recovery (bk ledger recover)"
            )
        by_reason: dict[str, list[LedgerId]] = {}
        for ledger_id, reason in list(self._reasons.items()):
            by_reason.setdefault(reason, []).append(ledger_id)
        said += [f"{_ledgers(ledgers)}: not whole yet: {reason}" for reason, ledgers in by_reason.items()]
        return tuple(said)

    async def is_whole(self, ledger_id: LedgerId, *, read_bytes_per_s: int = 0) -> bool:
        """Copy what is missing, then say whether the ledger is whole here.

        A ledger is whole if it is closed and everything that its metadata say is here was read and verified, or if it
        is deleted and its data are collected.

        Args:
            read_bytes_per_s: what is here is read at most so fast; others do not wait for it. 0: no limit, and others
                wait.

        Raises:
            MetadataError: the store does not answer, or shows an older state than was seen.
        """
        async with nullcontext() if read_bytes_per_s else self._turn:
            whole = await self._copy_missing(ledger_id, read_bytes_per_s)
        if whole:
            await self._metadata.present.check_fresh()  # an older state knows less of the ledger, or nothing
            self._not_closed.discard(ledger_id)
            self._reasons.pop(ledger_id, None)
        return whole

    async def close(self) -> None:
        """Close the connections to other bookies. Idempotent."""
        completer, self._completer = self._completer, None
        if completer is not None:
            await completer.close()

    async def _copy_missing(self, ledger_id: LedgerId, read_bytes_per_s: int) -> bool:
        left: int | None = None
        while True:
            found = await self._closed(ledger_id)
            if not isinstance(found, LedgerMetadata):
                return found
            gaps = await gaps_of(self._engine, self._bookie, ledger_id, found, read_bytes_per_s)  # what was copied too
            if not gaps:
                return True
            before, left = left, sum(gap.count for gap in gaps)
            if before is not None and left >= before and left < GAPS_MAX:
                self._reasons[ledger_id] = (
                    f"{counted(left, 'entry', 'that was', 'that were')} copied cannot be read here"
                )
                return False
            async with self._turn if read_bytes_per_s else nullcontext():
                brought = await self._bring(ledger_id, gaps)
            if not brought:
                return False

    async def _closed(self, ledger_id: LedgerId) -> LedgerMetadata | bool:
        """The metadata, read now, if the ledger is closed; otherwise whether it counts as whole without them."""
        self._not_closed.discard(ledger_id)
        try:
            found = (await self._metadata.ledgers.read(ledger_id, fresh=True)).value
        except NoSuchLedgerError:
            if await self._metadata.ledgers.restorable.has(ledger_id):
                self._reasons[ledger_id] = "it is deleted, and can still be brought back (bk ledger undelete)"
                return False
            return not self._engine.has(ledger_id)
        except MetadataFormatError as error:
            self._reasons[ledger_id] = f"its metadata cannot be read: {error}"
            return False
        if found.is_closed:
            return found
        self._not_closed.add(ledger_id)
        return False

    async def _bring(self, ledger_id: LedgerId, gaps: Sequence[MissingEntries]) -> bool:
        """Have the entries copied. Returns False, and notes the reason, if that is not possible now."""
        if not self._config.completion_bytes_per_s:
            self._reasons[ledger_id] = "completion_bytes_per_s is 0, so the bookie copies nothing by itself"
            return False
        try:
            await self._copy(ledger_id, gaps)
        except NoSuchLedgerError:
            return True  # looked at again
        except (BookKeeperError, OSError) as error:
            self._reasons[ledger_id] = f"{in_words(error)}; the bookie tries again"
            log.warning(
                "bookie %s could not copy the entries of ledger %d that it has lost (%s): it tries again",
                self._bookie,
                ledger_id,
                in_words(error),
            )
            return False
        except Exception:  # one bad ledger holds up no other
            self._reasons[ledger_id] = "copying failed, and the log says why; the bookie tries again"
            log.exception(
                "bookie %s could not copy the entries of ledger %d that it has lost: it tries again",
                self._bookie,
                ledger_id,
            )
            return False
        return True

    async def _copy(self, ledger_id: LedgerId, gaps: Sequence[MissingEntries]) -> None:
        if self._completer is None:
            module, _, name = COMPLETER.partition(":")
            make: MakeCompleter = getattr(import_module(module), name)
            self._completer = make(self._bookie, self._metadata, self._config, self._seams)
        wanted, done = sum(gap.count for gap in gaps), 0

        def report() -> None:
            self._now = (
                f"ledger {ledger_id}: {done} of {counted(wanted, 'lost entry')} copied from other bookies, "
                f"at most {self._config.completion_bytes_per_s} bytes a second"
            )

        def on_copied(entries: int, size: int) -> None:
            nonlocal done
            done += entries
            self._entries.add(entries)
            self._bytes.add(size)
            report()

        report()
        log.warning(
            "bookie %s has lost %s of ledger %d: it copies from other bookies",
            self._bookie,
            counted(wanted, "entry"),
            ledger_id,
        )
        try:
            await self._completer.complete(ledger_id, gaps, on_copied)
        finally:
            self._now = ""


async def gaps_of(
    engine: Volumes, bookie: BookieId, ledger_id: LedgerId, metadata: LedgerMetadata, read_bytes_per_s: int = 0
) -> list[MissingEntries]:
    """The entries of a closed ledger that its metadata say are here and that cannot be read. Reads all of it, at most
    ``read_bytes_per_s`` (0: no limit)."""
    spec, gaps, owed = metadata.spec, [], 0.0
    for index, fragment in enumerate(metadata.fragments):
        if bookie not in fragment.ensemble:
            continue
        position, end = fragment.ensemble.index(bookie), metadata.fragment_end(index)
        assert end is not None, "it is closed"
        missing: list[range] = []
        at = spec.next_held(position, fragment.first_entry)
        while at <= end and len(missing) < GAPS_MAX:
            count, size = await _count_from(engine, ledger_id, EntryId(at), end - at + 1)
            if read_bytes_per_s and (owed := owed + size / read_bytes_per_s) > _NAP_S:
                await asyncio.sleep(owed)
                owed = 0.0
            if not count:
                if missing and missing[-1].stop == at:
                    missing[-1] = range(missing[-1].start, at + 1)
                else:
                    missing.append(range(at, at + 1))
                if at % 100 == 0:
                    await asyncio.sleep(0)
            at = spec.next_held(position, at + max(1, count))
        if missing:
            gaps.append(MissingEntries(fragment.first_entry, position, tuple(missing)))
    return gaps


async def _count_from(engine: Volumes, ledger: LedgerId, first: EntryId, count: int) -> tuple[int, int]:
    """How many consecutive entries from ``first`` on can be read, at most ``count``; and their bytes."""
    done: asyncio.Future[tuple[int, int]] = asyncio.get_running_loop().create_future()

    def got(packed: PackedEntries | BaseException) -> None:
        if not done.done():
            done.set_result((0, 0) if isinstance(packed, BaseException) else (packed.count, len(packed.body)))

    engine.read_batch(ledger, first, count, BATCH_BYTES, got)
    return await done


def _ledgers(ledgers: list[LedgerId]) -> str:
    return f"ledger{'s' if len(ledgers) > 1 else ''} {some_of(sorted(ledgers), NAMED_MAX)}"


def _they(ledgers: list[LedgerId]) -> str:
    return "it is" if len(ledgers) == 1 else "they are"
