"""Whether bookies can be stopped without making anything unreadable or unwritable.

The answer is yes if, with these bookies away,

    * every entry of every range (of an open ledger's last fragment: up to the last add confirmed) keeps at least one
      good copy that was seen, and
    * every write set of every open ledger keeps an ack quorum of bookies that are up.

Metadata decide where they can; the other bookies of a range are asked what they hold only where metadata leave it open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from bookkeeper.amounts import counted
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.ledger_view import LedgerView
from bookkeeper.client.operators import Operator, require_bookies
from bookkeeper.errors import BookKeeperError, NoSuchLedgerError, in_words
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.ledger import LedgerMetadata
from bookkeeper.replication.copying.repair import RepairContext
from bookkeeper.replication.inspection.check import check_ledger
from bookkeeper.replication.inspection.explain import CopyState, ExplainedRange
from bookkeeper.replication.inspection.explain_ledger import explained_ranges

ASKS_AT_ONCE: Final = 8
"""Ledgers whose bookies are asked at a time."""


@dataclass(frozen=True, slots=True)
class StopObstacle:
    """One ledger that says no."""

    ledger_id: LedgerId
    reason: str
    """A sentence for people."""


@dataclass(slots=True)
class StopVerdict:
    """The answer."""

    bookies: tuple[BookieId, ...]
    ledgers: int = 0
    """How many ledgers were looked at."""
    asked: int = 0
    """Of how many the bookies were asked, because metadata did not decide."""
    obstacles: list[StopObstacle] = field(default_factory=list)

    @property
    def is_safe(self) -> bool:
        return not self.obstacles


def metadata_obstacles(
    metadata: LedgerMetadata, stopping: AbstractSet[BookieId], up: AbstractSet[BookieId]
) -> list[str]:
    """What metadata alone say against stopping these bookies. Pure.

    Args:
        stopping: bookies that are up and are to be stopped.
        up: all bookies that are up now.
    """
    found, left, spec = [], up - stopping, metadata.spec
    for index, fragment in enumerate(metadata.fragments):
        if not stopping & set(fragment.ensemble):
            continue
        end = metadata.fragment_end(index)
        begin = int(fragment.first_entry)
        if end is None:
            if not spec.can_acknowledge(left, fragment.ensemble):
                state = metadata.state.name.lower().replace("_", " ")
                up_then = ", ".join(sorted(left & set(fragment.ensemble))) or "none"
                found.append(
                    f"it is {state}, and some entries would not find "
                    f"{counted(spec.ack_quorum, 'bookie')} to store them: of "
                    f"{', '.join(fragment.ensemble)} only these would be up: {up_then}"
                )
            continue
        entries = spec.one_turn(begin, end + 1)
        if any(not left & set(spec.write_set(entry, fragment.ensemble)) for entry in entries):
            found.append(f"entries {begin}..{end}: no other bookie that is up has copies of all of them")
    return found


def unseen_obstacles(ranges: Sequence[ExplainedRange], stopping: AbstractSet[BookieId]) -> list[str]:
    """What the answers of the other bookies say against it. Pure. ``ranges``: explained without ``stopping``."""
    found = []
    for each in ranges:
        if not stopping & {copy.bookie for copy in each.copies}:
            continue
        others = [copy for copy in each.copies if copy.bookie not in stopping and copy.state is not CopyState.SEEN]
        if each.end is None:
            found.append(f"{each.span}: the last add confirmed is not known ({_doubts(each, stopping)})")
        elif each.unseen:
            doubts = "; ".join(
                f"{copy.bookie} lacks {copy.missing}"
                if copy.state is CopyState.LACKING
                else f"{copy.bookie} is {copy.state}: {copy.reason}"
                for copy in others
            )
            found.append(f"{each.span}: no other copy of {each.unseen} of them was seen ({doubts})")
    return found


def _doubts(each: ExplainedRange, stopping: AbstractSet[BookieId]) -> str:
    reasons = [copy.reason for copy in each.copies if copy.bookie not in stopping and copy.reason]
    return reasons[0] if reasons else "no bookie said it"


async def safe_to_stop(
    client: BookKeeper, bookies: Sequence[str], on_progress: Callable[[int], None] = lambda ledgers: None
) -> StopVerdict:
    """Say whether these bookies can be stopped together. Changes nothing.

    A bookie that is not registered is away already: stopping it changes nothing.

    Args:
        on_progress: called with the number of ledgers that were looked at.

    Raises:
        IllegalOperationError: a bookie is not known.
        MetadataError: the ledgers cannot be listed.
    """
    return await _Question(client, bookies, on_progress).run()


class _Question:
    def __init__(self, client: BookKeeper, bookies: Sequence[str], on_progress: Callable[[int], None]) -> None:
        self._client = client
        self._verdict = StopVerdict(tuple(dict.fromkeys(map(BookieId, bookies))))
        self._on_progress = on_progress
        self._context = RepairContext(services=client.services)
        self._up: set[BookieId] = set()
        self._stopping: set[BookieId] = set()

    async def run(self) -> StopVerdict:
        verdict, operator = self._verdict, Operator(self._client)
        self._up = await self._client.metadata_store.bookies.registered()
        require_bookies(verdict.bookies, sorted({*await operator.all_bookies(), *self._up}))
        self._stopping = self._up & set(verdict.bookies)
        waiting: list[tuple[LedgerId, LedgerMetadata]] = []
        async for ledger_id, found in operator.all_metadata():
            verdict.ledgers += 1
            self._on_progress(verdict.ledgers)
            if isinstance(found, BookKeeperError):
                self._object(ledger_id, f"its metadata cannot be read: {in_words(found)}")
            elif self._stopping & found.bookies:
                if reasons := metadata_obstacles(found, self._stopping, self._up):
                    self._object(ledger_id, "; ".join(reasons))
                    continue
                waiting.append((ledger_id, found))
                if len(waiting) == ASKS_AT_ONCE:
                    await self._check_all(waiting)
                    waiting = []
        await self._check_all(waiting)
        verdict.obstacles.sort(key=lambda obstacle: obstacle.ledger_id)
        return verdict

    def _object(self, ledger_id: LedgerId, reason: str) -> None:
        self._verdict.obstacles.append(StopObstacle(ledger_id, reason))

    async def _check_all(self, some: Sequence[tuple[LedgerId, LedgerMetadata]]) -> None:
        await asyncio.gather(*(self._check(ledger_id) for ledger_id, _ in some))

    async def _check(self, ledger_id: LedgerId) -> None:
        """Ask the other bookies of the ranges that would lose a copy."""
        self._verdict.asked += 1
        try:
            record = await LedgerView.read(self._client.metadata_store.ledgers, ledger_id, fresh=False)
            others = {
                bookie
                for fragment in record.metadata.fragments
                if self._stopping & set(fragment.ensemble)
                for bookie in fragment.ensemble
            } - self._stopping
            checked = await check_ledger(self._context, record, bookies=others)
        except NoSuchLedgerError:
            return
        except BookKeeperError as error:
            self._object(ledger_id, f"it cannot be looked at: {in_words(error)}")
            return
        ranges = explained_ranges(record.metadata, checked, self._up, self._context.tells_nothing)
        if reasons := unseen_obstacles(ranges, self._stopping):
            self._object(ledger_id, "; ".join(reasons))
