"""The shares of the members: which entries each bookie of the ensemble is sent, and which it never got.

On a striped ledger (E > Qw) a member holds only some of the entries of a run. It is sent a run only if it holds any.

Rules
    W8   Packets are built once and sent again as they are; a pending entry's packet is never given up.
    W14  ``MarkMissing`` says what a member lacks of what is confirmed.
"""

from __future__ import annotations

from bookkeeper.errors import check
from bookkeeper.ids import EntryId
from bookkeeper.ledger.ensemble.member import EnsembleMember
from bookkeeper.ledger.ensemble.writer_ensemble import WriterEnsemble
from bookkeeper.ledger.quorum import QuorumSpec
from bookkeeper.ledger.write.effects import Effect, MarkMissing, SendAdds
from bookkeeper.ledger.write.progress import WriterProgress


class MemberShares:
    """The shares of ``ensemble`` in what a writer was given, which ``progress`` says."""

    __slots__ = ("_ensemble", "_progress", "_spec", "_striped")

    def __init__(self, spec: QuorumSpec, ensemble: WriterEnsemble, progress: WriterProgress) -> None:
        self._spec = spec
        self._striped = spec.is_striped
        self._ensemble = ensemble
        self._progress = progress

    def send(self, first: EntryId, count: int, now: float, effects: list[Effect]) -> None:
        """Send every live member its share of a new run."""
        for member in self._ensemble.members:
            if member.live:
                if member.acks.mark >= first:
                    member.progress_at = now
                if not self._striped or self._spec.stripe_size(member.position, first, count):
                    effects.append(SendAdds(member.bookie, first, count, member.position))

    def send_from(self, member: EnsembleMember, first: int, effects: list[Effect]) -> None:
        """Send a member its share of everything from ``first`` on."""
        self._send(member, first, self._progress.next_entry, effects)

    def send_again(self, member: EnsembleMember, first: int, end: int, kept_from: int, effects: list[Effect]) -> None:
        """Send a member its share of ``first .. end - 1`` once more, as far as the packets are kept.

        Args:
            kept_from: packets below this entry were released, so that the member will never get them (W14).
        """
        if first < kept_from:
            gone = min(end, kept_from)
            known = gone <= self._progress.last_add_confirmed + 1
            check(known, "W8", f"entry {gone - 1} is pending and its packet is gone")
            self.note_missing(member, first, gone - 1, effects)
            member.acks.add(first, gone)  # confirmed entries need no more acks; the mark must not stand here
            first = gone
        self._send(member, first, end, effects)

    def _send(self, member: EnsembleMember, first: int, end: int, effects: list[Effect]) -> None:
        count = end - first
        if count > 0 and (not self._striped or self._spec.stripe_size(member.position, first, count)):
            effects.append(SendAdds(member.bookie, EntryId(first), count, member.position))

    def note_missing(self, member: EnsembleMember, first: int, last: int, effects: list[Effect]) -> None:
        """Note which of these confirmed entries a member never acknowledged (W14)."""
        effects += [MarkMissing(member.bookie, low, high) for low, high in self._ensemble.missing(member, first, last)]

    def note_missing_of(self, effects: list[Effect], *, live: bool) -> None:
        """Note what the live members, or the failed ones, lack of everything confirmed (W14)."""
        for member in self._ensemble.members:
            if member.live is live:
                self.note_missing(member, 0, self._progress.last_add_confirmed, effects)

    @property
    def is_lagging(self) -> bool:
        """Has a live member not acknowledged its share of everything confirmed?"""
        last = self._progress.last_add_confirmed
        return any(member.live and any(self._ensemble.missing(member, 0, last)) for member in self._ensemble.members)
