"""Plans an ensemble change from the metadata that are stored now (W5).

The writer asks for a change with the first id of the new fragment. A shell performs it, and may lose its
compare-and-set any number of times. Each time it plans again from the stored metadata; it merges nothing by hand. The
writer's last add confirmed does not move meanwhile (W4), so that this first id stays right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bookkeeper.ids import BookieId
from bookkeeper.ledger.metadata import LedgerMetadata


def still_failed(stored: LedgerMetadata, failed: Sequence[BookieId]) -> tuple[BookieId, ...]:
    """The bookies of ``failed`` that are in the stored last fragment and so need a stand-in."""
    return tuple(b for b in stored.last_fragment.ensemble if b in set(failed))


def replan(stored: LedgerMetadata, first_entry: int, stand_ins: Mapping[BookieId, BookieId]) -> LedgerMetadata:
    """The metadata to write: each bookie in ``stand_ins`` gives its place to its stand-in; the others keep theirs.

    Returns ``stored`` itself if none of them is in the last fragment any more: report it as the committed metadata.

    Raises:
        LedgerClosedError, LedgerFencedError: the ledger is not OPEN any more.
        MetadataFormatError: a stand-in is in the ensemble already.
    """
    old = stored.last_fragment.ensemble
    ensemble = tuple(stand_ins.get(b, b) for b in old)
    changed = stored.change_ensemble(first_entry, ensemble)
    return stored if ensemble == old else changed
