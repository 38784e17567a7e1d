"""What must hold between the bookies of an open ledger's writer and its pending adds. For tests."""

from __future__ import annotations

from bookkeeper.errors import check
from bookkeeper.ledger.ensemble.writer_ensemble import WriterEnsemble
from bookkeeper.ledger.metadata import LedgerMetadata
from bookkeeper.ledger.write.alarm import Alarm
from bookkeeper.ledger.write.progress import WriterProgress


def check_confirms(
    metadata: LedgerMetadata, ensemble: WriterEnsemble, progress: WriterProgress, alarm: Alarm, told: object
) -> None:
    """Derive again, from members and acks, what may be confirmed; ``told`` names the writer in a failure.

    Raises: InvariantError.
    """
    fragment, members = metadata.last_fragment, ensemble.members
    check(fragment.ensemble == tuple(member.bookie for member in members), "W1", (fragment, told))
    changing = ensemble.changing is not None
    for member in members:
        limit = metadata.spec.next_held(member.position, progress.next_entry)
        check(member.acks.mark <= limit, "W1", (member.bookie, told))
        check(changing or not member.returned, "W10b", (member.bookie, told))
    first = progress.last_acknowledged + 1
    held = changing or ensemble.acknowledged_below(first, progress.next_entry) == first
    check(held, "W4", told)
    if (deadline := progress.deadline) is not None:
        check(alarm.at is not None and alarm.at <= deadline, "V1", (deadline, told))
