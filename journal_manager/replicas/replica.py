"""One replica of a program: which part it plays, and what its state holds (pure).

    STANDBY      reads the journal behind the active replica, and applies what is durable
      elected()      --> CATCHING_UP    it claims the journal; nobody else can write any more
    CATCHING_UP
      claimed(...)       the end of the journal is fixed
      activate()     --> ACTIVE         it has applied every edit, and the election is certain
    ACTIVE       applies, logs, answers
      fence(...)     --> FENCED         another replica has the journal, or the journal failed
    FENCED       answers nothing
      step_down()    --> STANDBY        its state holds durable edits only

From CATCHING_UP a failure leads to FENCED as well. ``fail()`` leads to FAILED from everywhere, for good.

The active replica applies an edit before it is durable, as HDFS's name node does, so that the program can refuse an
edit before it is logged. No answer shows such an edit before it is durable. A replica that is fenced with more in its
state than is durable must rebuild the state: other edits may get those ids.

Ids come again after edits were discarded, too. So a state is known by the last edit in it together with that edit's
epoch, and one that the journal does not have any more is ``forgotten()``, whatever stands under its ids now. What was
known to be durable is not forgotten with it: see :mod:`~journal_manager.replicas.known_edits`.
"""

from __future__ import annotations

from enum import Enum

from journal_manager.edits.discarded_edits import UNKNOWN_EPOCH
from journal_manager.errors import check
from journal_manager.fencing_token import FencingToken
from journal_manager.replicas.known_edits import KnownEdits
from journal_manager.txid import NOTHING, TxId


class ReplicaRole(Enum):
    """The part that a replica plays."""

    STANDBY = "standby"
    CATCHING_UP = "catching up"
    ACTIVE = "active"
    FENCED = "fenced"
    FAILED = "failed"


class Replica:
    """The state of one replica, without the program's."""

    def __init__(self) -> None:
        self.role = ReplicaRole.STANDBY
        self.applied = NOTHING
        """The program's state holds every edit up to here."""
        self.applied_epoch = UNKNOWN_EPOCH
        """The epoch of that edit, or of the snapshot that the state was."""
        self.known = KnownEdits()
        """What was durable, as far as this replica has ever seen; a rebuilt state does not change it."""
        self.token: FencingToken | None = None
        """The token of the journal that this replica claimed last."""
        self._end: TxId | None = None
        """The last edit of the journal at the claim."""
        self._rebuild = False

    @property
    def caught_up(self) -> bool:
        """Whether every edit that was durable at the claim is applied."""
        return self._end is not None and self.applied == self._end

    @property
    def end(self) -> TxId:
        """The last edit that was durable at the claim."""
        check(self._end is not None, "C8", "the journal was not claimed")
        assert self._end is not None
        return self._end

    @property
    def must_rebuild(self) -> bool:
        """Whether the state may hold edits that are not in the journal."""
        return self._rebuild

    def restored(self, at: TxId, epoch: int = UNKNOWN_EPOCH) -> None:
        """The program's state is now that of a snapshot at ``at``, or the empty one (NOTHING)."""
        check(self.role is not ReplicaRole.ACTIVE, "C4", "an active replica does not go back")
        self.applied, self.applied_epoch = at, epoch
        self.known.durable(at, epoch)
        self._rebuild = False

    def forgotten(self) -> None:
        """The program's state is of no use any more, and is restored before anything is applied to it."""
        check(self.role is not ReplicaRole.ACTIVE, "C4", "an active replica does not go back")
        self.applied, self.applied_epoch = NOTHING, UNKNOWN_EPOCH

    def replayed(self, first: TxId, last: TxId | None = None, epoch: int = UNKNOWN_EPOCH) -> None:
        """Edits of an epoch that were read from the journal are applied: ``first`` up to ``last`` (None: this one)."""
        check(self.role in (ReplicaRole.STANDBY, ReplicaRole.CATCHING_UP), "C4", self.role.value)
        check(first == self.applied + 1, "C4", (first, self.applied))
        check(last is None or last >= first, "C4", (first, last))
        self.applied, self.applied_epoch = first if last is None else last, epoch
        self.known.durable(self.applied, epoch)

    def elected(self) -> None:
        """This replica may claim the journal."""
        check(self.role is ReplicaRole.STANDBY and not self._rebuild, "C8", self.role.value)
        self.role, self._end = ReplicaRole.CATCHING_UP, None

    def claimed(self, token: FencingToken, last: TxId) -> None:
        """The journal was claimed, and ends at ``last``: what a standby has read is never dropped (J6), but for edits
        that were discarded, and those it has forgotten before."""
        check(self.role is ReplicaRole.CATCHING_UP, "C8", self.role.value)
        check(self.token is None or token.epoch > self.token.epoch, "C8", (token, self.token))
        check(self.applied <= last, "C4", (self.applied, last))
        self.token, self._end = token, last

    def activate(self) -> None:
        """Begin to answer."""
        check(self.role is ReplicaRole.CATCHING_UP and self.caught_up, "C8", (self.role.value, self.applied))
        self.role = ReplicaRole.ACTIVE

    def logged(self, txid: TxId) -> None:
        """An edit of this replica is applied, and was given to the journal."""
        check(self.role is ReplicaRole.ACTIVE, "C8", self.role.value)
        check(txid == self.applied + 1, "C4", (txid, self.applied))
        assert self.token is not None
        self.applied, self.applied_epoch = txid, self.token.epoch

    def fence(self, durable: TxId | None = None) -> None:
        """The journal is lost. ``durable`` is the last edit that certainly stays in it (None: what was replayed)."""
        check(self.role in (ReplicaRole.CATCHING_UP, ReplicaRole.ACTIVE), "C8", self.role.value)
        if durable is not None and durable > self.end:
            assert self.token is not None
            self.known.durable(durable, self.token.epoch)
        self._rebuild = self._rebuild or (durable is not None and self.applied > durable)
        self.role = ReplicaRole.FENCED

    def step_down(self) -> None:
        """Follow the journal again."""
        check(self.role is ReplicaRole.FENCED and not self._rebuild, "C4", "the state was not rebuilt")
        check(self.applied <= self.known.txid, "C4", (self.applied, self.known.txid))
        self.role = ReplicaRole.STANDBY

    def fail(self) -> None:
        """Take no more part."""
        self.role = ReplicaRole.FAILED
