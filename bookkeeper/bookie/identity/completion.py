"""Bringing back what a disk has lost, from the other bookies: what a bookie does itself to end its suspects.

A *suspect* is a ledger of which this bookie may have lost something: it is in limbo
(:mod:`~bookkeeper.bookie.identity.suspect_ledgers`), or older than the disk
(:mod:`~bookkeeper.bookie.identity.stale_adds`). It ends when it is closed and everything that its metadata say is here
was read and verified. This module looks, and if only entries are missing it has them copied from the other bookies of
the ledger's fragments, through the machinery of repair, a ledger at a time and not faster than
``completion_bytes_per_s``. Whether the ledger is whole then is looked at again, by reading all of it: whatever the
copy did, it proves nothing.

What this never does: close a ledger, change metadata, say that an entry does not exist. A ledger that is open stays a
suspect until its writer, or whoever recovers it, has closed it.

The repair is a higher floor's and is known here by its name only; it is loaded when something is to be copied.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Final, Protocol

from bookkeeper.bookie.config import BookieConfig
from bookkeeper.errors import BookKeeperError, MetadataFormatError, NoSuchLedgerError, in_words
from bookkeeper.ids import BookieId, EntryId, LedgerId
from bookkeeper.ledger import LedgerMetadata
from bookkeeper.meta import Metadata
from bookkeeper.metrics import Metrics
from bookkeeper.seams import Seams
from bookkeeper.storage.engine import Engine, PackedEntries

log = logging.getLogger(__name__)

COMPLETER: Final = "bookkeeper.replication.peer_completer:PeerCompleter"

BATCH_BYTES: Final = 1 << 20
"""How much is read at once when a copy is verified."""

GAPS_MAX: Final = 100_000
"""Runs of missing entries of a fragment that are looked for at a time; the rest comes after them."""

NAMED_MAX: Final = 5
"""How many ledgers a sentence names."""


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
        """How many entries."""
        return sum(map(len, self.entries))


class Completer(Protocol):
    """Brings entries here."""

    async def complete(
        self, ledger_id: LedgerId, gaps: Sequence[MissingEntries], on_copied: Callable[[int, int], None]
    ) -> None:
        """Copy the entries to this bookie; ``on_copied`` is told (entries, bytes) as they are durable here.

        Raises:
            BookKeeperError: not all of them could be had now.
        """

    async def close(self) -> None:
        """Let go of connections. Idempotent."""


MakeCompleter = Callable[[BookieId, Metadata, BookieConfig, Seams], Completer]


class Completion:
    """One bookie's, for all its suspects. On the loop's thread."""

    def __init__(
        self,
        engine: Engine,
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
        self._entries = metrics.counter("completion_entries_total", "Entries lost here and copied from other bookies.")
        self._bytes = metrics.counter("completion_bytes_total", "Their bytes.")
        self._turn = asyncio.Lock()
        """One ledger at a time."""
        self._now = ""
        """What is being done."""
        self._not_closed: set[LedgerId] = set()
        self._reasons: dict[LedgerId, str] = {}
        """Why a ledger that is closed is not whole yet."""

    def sentences(self) -> tuple[str, ...]:
        """What this is doing, and why it is not."""
        said = [self._now] if self._now else []
        if open_ := list(self._not_closed):
            said.append(
                f"{_ledgers(open_)}: what was lost here is copied when {_they(open_)} closed, by "
                "the writer or by a recovery (bk ledger recover)"
            )
        by_reason: dict[str, list[LedgerId]] = {}
        for ledger_id, reason in list(self._reasons.items()):
            by_reason.setdefault(reason, []).append(ledger_id)
        said += [f"{_ledgers(ledgers)}: not whole yet: {reason}" for reason, ledgers in by_reason.items()]
        return tuple(said)

    async def is_whole(self, ledger_id: LedgerId) -> bool:
        """The ledger is closed, and everything that its metadata say is here has been read and verified, after it
        was brought here where that was possible; or it is deleted and its data collected.

        Raises:
            MetadataError: the store cannot say, or shows an older state than was seen.
        """
        async with self._turn:
            whole = await self._look(ledger_id)
        if whole:
            await self._metadata.present.check_fresh()  # an older state knows less of the ledger, or nothing
            self._not_closed.discard(ledger_id)
            self._reasons.pop(ledger_id, None)
        return whole

    async def close(self) -> None:
        """Let go of the other bookies. Idempotent."""
        completer, self._completer = self._completer, None
        if completer is not None:
            await completer.close()

    async def _look(self, ledger_id: LedgerId) -> bool:
        left: int | None = None
        while True:
            found = await self._closed(ledger_id)
            if not isinstance(found, LedgerMetadata):
                return found
            gaps = await gaps_of(self._engine, self._bookie, ledger_id, found)  # whatever was copied: this counts
            if not gaps:
                return True
            before, left = left, sum(gap.count for gap in gaps)
            if before is not None and left >= before and left < GAPS_MAX:
                self._reasons[ledger_id] = f"{left} entries that were copied cannot be read here"
                return False
            if not await self._bring(ledger_id, gaps):
                return False

    async def _closed(self, ledger_id: LedgerId) -> LedgerMetadata | bool:
        """The metadata of a closed ledger, read now; otherwise whether it is whole without."""
        self._not_closed.discard(ledger_id)
        try:
            found = (await self._metadata.ledgers.read(ledger_id, fresh=True)).value
        except NoSuchLedgerError:
            return ledger_id not in self._engine.ledgers()
        except MetadataFormatError as error:
            self._reasons[ledger_id] = f"its metadata cannot be read: {error}"
            return False
        if found.is_closed:
            return found
        self._not_closed.add(ledger_id)
        return False

    async def _bring(self, ledger_id: LedgerId, gaps: Sequence[MissingEntries]) -> bool:
        """Have the entries copied; False, and the reason noted, if that could not be done now."""
        if not self._config.completion_bytes_per_s:
            self._reasons[ledger_id] = "completion_bytes_per_s is 0: nothing is copied by itself"
            return False
        try:
            await self._copy(ledger_id, gaps)
        except NoSuchLedgerError:
            return True  # looked at again
        except (BookKeeperError, OSError) as error:
            self._reasons[ledger_id] = f"{error}; it is tried again"
            log.warning("ledger %d is not whole here yet: %s", ledger_id, in_words(error))
            return False
        except Exception:  # one bad ledger holds up no other
            self._reasons[ledger_id] = "the log says what went wrong; it is tried again"
            log.exception("ledger %d could not be made whole", ledger_id)
            return False
        return True

    async def _copy(self, ledger_id: LedgerId, gaps: Sequence[MissingEntries]) -> None:
        if self._completer is None:
            module, _, name = COMPLETER.partition(":")
            make: MakeCompleter = getattr(import_module(module), name)
            self._completer = make(self._bookie, self._metadata, self._config, self._seams)
        wanted, done = sum(gap.count for gap in gaps), 0

        def tell() -> None:
            self._now = (
                f"ledger {ledger_id}: {done} of {wanted} entries that were lost here are copied from other bookies, "
                f"{self._config.completion_bytes_per_s} bytes a second at most"
            )

        def on_copied(entries: int, size: int) -> None:
            nonlocal done
            done += entries
            self._entries.add(entries)
            self._bytes.add(size)
            tell()

        tell()
        log.warning("ledger %d: %d entries were lost here, they are copied from other bookies", ledger_id, wanted)
        try:
            await self._completer.complete(ledger_id, gaps, on_copied)
        finally:
            self._now = ""


async def gaps_of(
    engine: Engine, bookie: BookieId, ledger_id: LedgerId, metadata: LedgerMetadata
) -> list[MissingEntries]:
    """What a closed ledger's metadata say is here and cannot be read, by reading all of it."""
    spec, gaps = metadata.spec, []
    for index, fragment in enumerate(metadata.fragments):
        if bookie not in fragment.ensemble:
            continue
        position, end = fragment.ensemble.index(bookie), metadata.fragment_end(index)
        assert end is not None, "it is closed"
        missing: list[range] = []
        at = spec.next_held(position, fragment.first_entry)
        while at <= end and len(missing) < GAPS_MAX:
            count = await _count_from(engine, ledger_id, EntryId(at), end - at + 1)
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


async def _count_from(engine: Engine, ledger: LedgerId, first: EntryId, count: int) -> int:
    """How many consecutive entries could be read; at most ``count``."""
    done: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def got(packed: PackedEntries | BaseException) -> None:
        if not done.done():
            done.set_result(0 if isinstance(packed, BaseException) else packed.count)

    engine.read_batch(ledger, first, count, BATCH_BYTES, got)
    return await done


def _ledgers(ledgers: list[LedgerId]) -> str:
    some = ", ".join(map(str, sorted(ledgers)[:NAMED_MAX]))
    more = f" and {len(ledgers) - NAMED_MAX} more" if len(ledgers) > NAMED_MAX else ""
    return f"ledger{'s' if len(ledgers) > 1 else ''} {some}{more}"


def _they(ledgers: list[LedgerId]) -> str:
    return "it is" if len(ledgers) == 1 else "they are"
