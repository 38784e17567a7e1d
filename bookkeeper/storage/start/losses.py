"""What a start finds missing or damaged, and what follows from it. A pure machine: no I/O.

    lost          acknowledged data may be missing: each reason stands in the manifest until limbo ends (B9)
    quarantined   damaged places, for the operator

Whatever is found, nothing that could still hold a last copy is removed (G4): this machine says what may go.
"""

from __future__ import annotations


class StartLosses:
    """Told by the other parts of a start what they find."""

    def __init__(self) -> None:
        self.lost: list[str] = []
        """Reasons for limbo."""
        self.quarantined: list[str] = []
        """Damaged places."""
        self.known: frozenset[str] = frozenset()
        """Reasons that earlier starts have found; those starts took in what there was to take in."""
        self._before_journal: tuple[int, int] | None = None

    def known_before(self, reasons: list[str]) -> None:
        """The manifest names these reasons for limbo."""
        self.lost += reasons
        self.known = frozenset(reasons)

    def journal_begins(self) -> None:
        """From now on it is the journal that is read."""
        self._before_journal = len(self.lost), len(self.quarantined)

    @property
    def damaged(self) -> bool:
        """Something is not as it was left: nothing may be removed (G4)."""
        return bool(set(self.lost) - self.known or self.quarantined)

    @property
    def journal_broken(self) -> bool:
        """Something is wrong with the journal itself. To be asked when it is read, and nothing else since."""
        return self._before_journal is not None and (len(self.lost), len(self.quarantined)) != self._before_journal

    @property
    def keep_journals(self) -> bool:
        """The journal files that the mark passes are not recycled: they are put aside."""
        return bool(self.damaged or self.known)

    @property
    def limbo(self) -> str | None:
        """As the manifest is to say it."""
        return "; ".join(dict.fromkeys(self.lost)) or None
