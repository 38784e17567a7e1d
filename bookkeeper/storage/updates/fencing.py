"""Fencing on a bookie's disk: how a fence becomes durable, and which adds a ledger takes (B2, B3).

A fence is a record of the journal, as an add is. It is visible in the turn in which it comes, and durable with the
group that collects.
"""

from __future__ import annotations

from typing import Final

from bookkeeper.codec import KEY_SIZE
from bookkeeper.errors import DiskFullError, LedgerFencedError, UnauthorizedError, in_words
from bookkeeper.ids import LedgerId
from bookkeeper.storage.base.disk_state import DiskState
from bookkeeper.storage.base.results import EngineState
from bookkeeper.storage.index.ledger_descriptor import LedgerDescriptor, StateRecordKind, state_record
from bookkeeper.storage.journal.group_commit import GroupCommit
from bookkeeper.storage.ledgers.ledger_table import LedgerTable
from bookkeeper.storage.ledgers.unknowns import Unknowns

# As a global: to look a member up in its class costs ten times as much (CPython 3.11).
_WRITABLE: Final = EngineState.WRITABLE


class LedgerFencing:
    """Owned by the loop's thread."""

    def __init__(
        self,
        disk_state: DiskState,
        ledgers: LedgerTable,
        unknowns: Unknowns,
        commit: GroupCommit,
        inflight_bytes: int,
    ) -> None:
        """
        Args:
            inflight_bytes: while the journal cannot be written, no more than this is kept in memory.
        """
        self._disk_state, self._ledgers, self._unknowns, self._commit = disk_state, ledgers, unknowns, commit
        self._inflight_bytes = inflight_bytes

    def fence(self, ledger_id: LedgerId, master_key: bytes) -> None:
        """Visible at once, durable with the group that collects; see :meth:`Engine.fence`."""
        if ledger_id in self._ledgers.dropped:
            return
        ledger = self._known(ledger_id, master_key)
        if ledger is not None and ledger.fenced and ledger.key is not None:
            return
        self._disk_state.refuse_if_stopped()
        if ledger is None:
            ledger = LedgerDescriptor(ledger_id, master_key)
            self._ledgers.add(ledger)
        ledger.fenced = True
        ledger.learn_key(master_key)
        self._ledgers.changed(ledger)
        self._commit.add_record(ledger_id, state_record(ledger_id, StateRecordKind.FENCED, master_key))

    def admit(
        self, ledger_id: LedgerId, key: bytes, recovery: bool, *, fenced_too: bool = False
    ) -> LedgerDescriptor | None:
        """Whether something may be added to a ledger; what is known of it, if anything is.

        Raises:
            LedgerFencedError, UnauthorizedError, DiskFullError, BookieFailedError
        """
        _check_form(ledger_id, key)
        if self._disk_state.now is not _WRITABLE or self._disk_state.closing:
            self._disk_state.refuse_if_stopped()
            if not recovery:
                raise DiskFullError("this bookie's disk is full: read-only")
        groups = self._commit.groups
        if groups.blocked is not None and groups.in_flight > self._inflight_bytes:
            raise DiskFullError(f"the journal cannot be written for now: {in_words(groups.blocked)}")
        ledger = self._ledgers.ledgers.get(ledger_id)
        if ledger is None:
            if ledger_id in self._ledgers.dropped:
                raise LedgerFencedError(f"ledger {ledger_id} was deleted")
        else:
            ledger.check_key(key)
        if recovery or fenced_too:
            return ledger
        limbo = self._unknowns.limbo is not None and self._unknowns.in_limbo(ledger_id)
        if limbo or (ledger is not None and ledger.fenced):
            raise LedgerFencedError(f"ledger {ledger_id} is fenced")
        return ledger

    def _known(self, ledger_id: LedgerId, key: bytes) -> LedgerDescriptor | None:
        """What is known of the ledger, if anything is; its key is compared, if one is known."""
        _check_form(ledger_id, key)
        ledger = self._ledgers.ledgers.get(ledger_id)
        if ledger is not None:
            ledger.check_key(key)
        return ledger


def _check_form(ledger_id: LedgerId, key: bytes) -> None:
    """
    Raises:
        UnauthorizedError: no client makes such a key, and no index has room for it.
    """
    if len(key) != KEY_SIZE:
        raise UnauthorizedError(f"ledger {ledger_id}: a master key has {KEY_SIZE} bytes, and this one {len(key)}")
