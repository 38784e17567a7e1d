"""Where copies stand: whatever writers, recoveries and repairs put into the metadata of a ledger (Q6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bookkeeper.ledger import LedgerMetadata

RACKS_MIN = 2
"""What clients of these worlds want of every write set; the default."""


class RackWatch:
    """Judges every change of a ledger's metadata."""

    def __init__(
        self,
        racks: Mapping[str, str],
        problem: Callable[[str, str], None],
        count: Callable[[str], None],
        *,
        enforced: bool,
    ) -> None:
        self._racks = racks
        self._problem = problem
        self._count = count
        self._enforced = enforced
        self._judged: set[tuple[int, tuple[str, ...]]] = set()

    def on_metadata(self, ledger: int, metadata: LedgerMetadata) -> None:
        """A ledger is new, or its metadata was changed."""
        for fragment in metadata.fragments:
            ensemble = tuple(fragment.ensemble)
            if (ledger, ensemble) in self._judged:
                continue
            self._judged.add((ledger, ensemble))
            apart = all(
                len({self._racks[each] for each in metadata.spec.write_set(entry, fragment.ensemble)})
                >= min(RACKS_MIN, metadata.spec.write_quorum)
                for entry in range(len(ensemble))
            )
            self._count("ensembles_apart" if apart else "ensembles_together")
            if self._enforced and not apart:
                self._problem("Q6", f"ledger {ledger} has entries with all copies in one rack: {ensemble}")
