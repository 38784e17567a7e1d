"""Asks a ledger's bookies what they hold, and explains every range of entries: the shell of ``explain``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.ledger_view import LedgerView
from bookkeeper.errors import in_words
from bookkeeper.ids import BookieId, EntryId, LedgerId
from bookkeeper.ledger import LedgerMetadata, QuorumSpec
from bookkeeper.ledger.location import DEFAULT_LOCATION
from bookkeeper.replication.copying.copies import Copy
from bookkeeper.replication.copying.repair import RepairContext
from bookkeeper.replication.inspection.check import CheckedLedger, IncompleteCopy, check_ledger
from bookkeeper.replication.inspection.explain import (
    CopyState,
    ExplainedCopy,
    ExplainedRange,
    Loss,
    explain_range,
    loss_of_places,
    total,
    worst_loss,
)

DOES_NOT_LIST = "it does not list what it holds; its first and its last entry were read"


@dataclass(frozen=True, slots=True)
class ExplainedLedger:
    """A ledger at one moment."""

    ledger_id: LedgerId
    metadata: LedgerMetadata
    ranges: tuple[ExplainedRange, ...]
    places: Mapping[BookieId, str]
    """In which rack each of its bookies stands."""

    @property
    def unseen(self) -> int:
        """How many entries have no good copy that was seen."""
        return sum(each.unseen for each in self.ranges)

    @property
    def lost(self) -> int:
        """How many entries have not even a believed copy."""
        return sum(each.lost for each in self.ranges)

    @property
    def is_whole(self) -> bool:
        """Whether every copy was seen."""
        return all(copy.state is CopyState.SEEN for each in self.ranges for copy in each.copies)

    def after(self, failures: int) -> Loss:
        """What so many further failures would lose at most, of all ranges together."""
        return worst_loss(total(self.ranges, self.metadata.spec), failures)

    def after_losing_each_place(self) -> dict[str, Loss]:
        """By rack: what would be lost if all of the ledger's bookies there failed."""
        return loss_of_places(total(self.ranges, self.metadata.spec), self.places)


async def explain_ledger(client: BookKeeper, ledger_id: LedgerId) -> ExplainedLedger:
    """Ask every bookie of the ledger which entries it holds, and explain every range. Changes nothing.

    The last fragment of a ledger that is not closed is explained up to the last add confirmed that a reader sees.

    Raises: NoSuchLedgerError, MetadataError.
    """
    metadata = client.metadata_store
    record = await LedgerView.read(metadata.ledgers, ledger_id)
    registered = await metadata.bookies.registered()
    context = RepairContext(services=client.services)
    checked = await check_ledger(context, record)
    known = await metadata.locations.read()
    places = {bookie: str(known.get(bookie, DEFAULT_LOCATION)) for bookie in record.metadata.bookies}
    ranges = explained_ranges(record.metadata, checked, registered, context.tells_nothing)
    return ExplainedLedger(ledger_id, record.metadata, tuple(ranges), places)


def explained_ranges(
    metadata: LedgerMetadata,
    checked: CheckedLedger,
    registered: Collection[BookieId],
    tells_nothing: Collection[BookieId],
) -> list[ExplainedRange]:
    """Explain what a check has found. Copies that it has not looked at count as gone."""
    incomplete = {(each.copy.first_entry, each.copy.position): each for each in checked.incomplete}
    looked_at: dict[EntryId, dict[int, Copy]] = defaultdict(dict)
    for copy in checked.copies:
        looked_at[copy.first_entry][copy.position] = copy
    ranges = []
    for index, fragment in enumerate(metadata.fragments):
        if not (found := looked_at.get(fragment.first_entry)):
            continue
        copies = []
        for position, bookie in enumerate(fragment.ensemble):
            if position not in found:
                copies.append(ExplainedCopy(bookie, CopyState.GONE, reason="it was not asked"))
                continue
            lack = incomplete.get((fragment.first_entry, position))
            copies.append(_state(metadata.spec, found[position], lack, bookie in registered, bookie in tells_nothing))
        end = next(iter(found.values())).bounded.end
        decided = metadata.fragment_end(index) is not None
        ranges.append(explain_range(metadata.spec, fragment.first_entry, end, decided, copies))
    return ranges


def _state(
    spec: QuorumSpec, copy: Copy, lack: IncompleteCopy | None, registered: bool, tells_nothing: bool
) -> ExplainedCopy:
    bookie = copy.bookie
    if lack is None:
        if copy.bounded.held(spec) == 0:
            if registered:
                return ExplainedCopy(bookie, CopyState.SEEN)
            return ExplainedCopy(bookie, CopyState.GONE, reason=f"{bookie} is not registered")
        if tells_nothing:
            return ExplainedCopy(bookie, CopyState.BELIEVED, reason=DOES_NOT_LIST)
        return ExplainedCopy(bookie, CopyState.SEEN)
    if lack.unknown is not None:
        state = CopyState.BELIEVED if registered else CopyState.GONE
        return ExplainedCopy(bookie, state, reason=in_words(lack.unknown))
    return ExplainedCopy(bookie, CopyState.LACKING, lack.missing, lack.entries)
