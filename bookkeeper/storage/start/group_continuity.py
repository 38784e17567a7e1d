"""Whether the groups of the journal follow one another without a gap, from the mark to the end. Pure: no I/O.

Group numbers follow each other without a gap (K10), and each header says up to where everything was durable when the
group was written. So a number that is passed over is a group that was durable and is gone (K9); the last group may be
unfinished, and was then never acknowledged. The replay tells this machine what it reads, in the order of the files:

    file_begins     the header of a journal file
    group           a whole group: is it to be replayed?
    unreadable      a stretch that holds no whole group: is it a last group that has to be judged?
    judged          the verdict: rot, or an unfinished last group
    ended           the last file is read
    compare         what is known elsewhere of this directory (K32)

What is missing it says to :class:`~bookkeeper.storage.start.losses.StartLosses`.
"""

from __future__ import annotations

from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.base.manifest import Manifest
from bookkeeper.storage.base.results import PublishedProgress
from bookkeeper.storage.journal.group_writer import journal_name
from bookkeeper.storage.journal.journal_format import DamagedStretch
from bookkeeper.storage.start.losses import StartLosses


class GroupContinuity:
    """One replay of the journal."""

    def __init__(
        self, config: StorageConfig, before: Manifest, losses: StartLosses, *, clean: bool, no_manifest: str | None
    ) -> None:
        """
        Args:
            before: the mark.
            losses: told what is missing.
            clean: the last run was stopped cleanly.
            no_manifest: why ``before`` is none that was on disk; None: it is.
        """
        self._config, self._before, self._losses = config, before, losses
        self._clean, self._no_manifest = clean, no_manifest
        self.last = before.sequence
        """The last group that is covered or replayed."""
        self.torn: str | None = None
        """Where an unfinished last group lies: it was never acknowledged."""
        self._began = False
        """Without a mark: where the journal begins is known."""

    def files(self, ids: list[int]) -> list[int]:
        """Which of the journal files that are there are read, in this order."""
        first = self._before.file_id
        read = [file_id for file_id in ids if file_id >= first]
        if first and first not in read and not self._clean:
            self._losses.lost.append(f"{journal_name(first)} is missing")
        return read

    # -- what is read -------------------------------------------------------------------------------------

    def file_begins(self, first_sequence: int, path: str) -> None:
        """The header of a file says with which group it begins."""
        self._reach(first_sequence, path)

    def group(self, sequence: int, path: str) -> bool:
        """A whole group. True: it is to be replayed; False: it is covered."""
        if sequence <= self.last:
            return False
        self._reach(sequence, path)
        self.last = sequence
        return True

    def unreadable(self, bad: DamagedStretch, path: str) -> int | None:
        """A stretch that holds no whole group.

        Returns:
            the number of the group that would lie there, if it is for the replay to look closer and report
            :meth:`judged`; None: nothing has to be found out.
        """
        if bad.claims > self.last:  # a torn group's header says what was durable before it
            self._reach(bad.claims + 1, path)
            return None
        sequence = bad.sequence if bad.begun else self.last + 1
        return sequence if bad.last and sequence > self.last else None

    def judged(self, place: str, begun: bool, sequence: int, proof: str | None) -> None:
        """The last group of a file is not whole, or nothing follows the last whole one, as at the end of most.

        Args:
            begun: a header of the group is there.
            proof: what shows that it had been durable; None: nothing does.
        """
        if proof is not None:
            self.durable_and_gone(place, proof, sequence)
        elif begun:
            self.torn = f"{place}: the last group is not whole"

    def durable_and_gone(self, place: str, proof: str, sequence: int) -> None:
        """There was such a group, behind the last one or of this number (K9)."""
        self._losses.lost.append(f"{place}: a group that had been durable is damaged or missing ({proof})")
        self._losses.quarantined.append(place)
        self.torn, self.last = None, max(sequence, self.last + 1)

    def _reach(self, sequence: int, path: str) -> None:
        """K9: groups between the last one and this are gone, though this one says they were durable."""
        if self.last == 0 and self._before.rebuild and not self._began:  # no mark: from the oldest journal on (K15)
            self._began = True
            self.last = sequence - 1
            self._earlier_groups_were_logged()
        if sequence > self.last + 1:
            groups = f"groups {self.last + 1} to {sequence - 1}"
            self._losses.lost.append(f"{groups} before {path} are damaged or missing")
            self._losses.quarantined.append(groups)
            self.last = sequence - 1
            self._earlier_groups_were_logged()
        if sequence > self.last:
            self.torn = None

    def _earlier_groups_were_logged(self) -> None:
        """What the journal's earlier groups were covered by must be there."""
        if self.last and not self._before.logs:
            self._losses.lost.append(f"{self._config.ledger_dir} holds no entry logs")

    # -- the end ------------------------------------------------------------------------------------------

    def ended(self, proof: str | None) -> None:
        """Everything is read. ``proof``: what shows that there was a group behind the last one."""
        if self._clean and self.torn is not None:
            self._losses.lost.append(f"after a clean stop: {self.torn}")
        if proof is not None:
            place = self.torn or f"{self._config.journal_dir} behind group {self.last}"
            self.durable_and_gone(place, proof, 0)

    def compare(self, known: PublishedProgress) -> None:
        """K32, and what a directory without its manifest cannot tell (B5)."""
        before, lost = self._before, self._losses.lost
        if self._no_manifest is not None:
            if known.boot or self.last or before.logs or before.next_segment > 1:
                lost.append(f"{self._no_manifest}: whether other files are missing, too, cannot be told")
        elif known.boot > before.boot:
            lost.append(
                f"{self._config.ledger_dir} was put back from an older copy: it knows of start {before.boot}, the "
                f"bookie's data have seen start {known.boot}"
            )
        if known.sequence > self.last:
            lost.append(
                f"{self._config.journal_dir} was put back from an older copy, or has lost its end: {known.sequence} "
                f"groups were durable, {self.last} are known here"
            )
            self.torn, self.last = None, known.sequence
