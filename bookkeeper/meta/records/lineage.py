"""Records of a cluster's moves from store to store, so that nobody takes the old store for the present one.

The records lie beside the cluster's root; store_copy writes them:

=============  ============================================================================================
``copied``     the copies that led here, oldest first, each with an id and the last transaction of its source; also the
               accepted losses, after which the cluster went on from an older state (``bk metadata accept-rollback``)
``copying``    a copy into this store has begun and not ended: there is no cluster here yet
``moved``      a copy from this store has ended: the cluster is there now, not here
=============  ============================================================================================

A bookie remembers the highest transaction it saw. In another store numbers begin anew. So the bookie also remembers the
copy to which the number belongs. After a move, the store must have been copied *after* what the bookie saw.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from bookkeeper.errors import ClusterMovedError, MetadataFormatError, MetadataRolledBackError, in_words
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store import MetadataStore, names_below

COPIED: Final = "copied"
COPYING: Final = "copying"
MOVED: Final = "moved"


@dataclass(frozen=True, slots=True)
class AcceptedLoss:
    """A loss that an operator has accepted: the cluster went on from an older state."""

    highest: int
    """The greatest ledger id that was found anywhere; -1 if there was none."""
    keep_s: int
    """Seconds for which bookies keep ledgers up to that id that are in no metadata."""


@dataclass(frozen=True, slots=True)
class StoreMove:
    """One move to another store, or one accepted loss."""

    id: str
    """A random name of the store's contents from then on."""
    transaction: int
    """The source's newest transaction when it was copied; for a loss, the store's own."""
    loss: AcceptedLoss | None = None
    """The accepted loss; the store need not show any more what was seen before it. None for a copy."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """The moves that led to a store, oldest first."""

    copies: tuple[StoreMove, ...] = ()

    @property
    def id(self) -> str:
        """The id of the last move; empty for a cluster that was made here."""
        return self.copies[-1].id if self.copies else ""

    def encode(self) -> bytes:
        rows: list[list[Any]] = []
        for copy in self.copies:
            lost = [] if copy.loss is None else [{"highest": copy.loss.highest, "keep_s": copy.loss.keep_s}]
            rows.append([copy.id, copy.transaction, *lost])
        return json.dumps(rows).encode()

    @classmethod
    def decode(cls, data: bytes) -> Lineage:
        """Raises: MetadataFormatError."""
        try:
            return cls(tuple(_copy(*row) for row in json.loads(data)))
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            raise MetadataFormatError(f"the record of copies is damaged: {in_words(error)}") from error

    def mark(self, transaction: int) -> bytes:
        """The note that a bookie writes after it saw ``transaction`` here."""
        return f"{transaction} {self.id}".rstrip().encode() + b"\n"

    def must_have_seen(self, mark: bytes) -> int:
        """The transaction that this store must show at least, by a bookie's note; 0 if it was made after the note.

        Raises:
            MetadataRolledBackError: the store lacks what was seen.
            ValueError: not such a mark.
        """
        transaction, *rest = mark.split()
        seen, name = int(transaction), rest[0].decode() if rest else ""
        if name == self.id:
            return seen
        names = ["", *(copy.id for copy in self.copies)]
        since = self.copies[names.index(name) :] if name in names else self.copies[-1:]
        if any(copy.loss is not None for copy in since):
            return 0
        if name not in names:
            raise MetadataRolledBackError(
                f"this store shows the cluster as it was before it moved: the bookie has seen copy {name} of the "
                "metadata, and this store does not come from it; start the bookie with the address of the new store"
            )
        copied = self.copies[names.index(name)]
        if seen > copied.transaction:
            raise MetadataRolledBackError(
                f"this store was copied from an older state: the bookie has seen transaction {seen}, but the copy ends "
                f"at {copied.transaction}"
            )
        return 0


def _copy(name: str, transaction: int, loss: Mapping[str, int] | None = None) -> StoreMove:
    lost = None if loss is None else AcceptedLoss(int(loss["highest"]), int(loss["keep_s"]))
    return StoreMove(str(name), int(transaction), lost)


async def read(store: MetadataStore, paths: Paths) -> Lineage:
    """Read where a store's contents come from.

    Raises:
        ClusterMovedError: the cluster has moved to another store, or a copy into this one has not ended.
    """
    names = await names_below(store, paths.own_root)
    if COPYING in names:
        raise ClusterMovedError(
            f"a copy into {paths.root} has begun and not ended: run the same `bk metadata copy` with --resume"
        )
    if MOVED in names:
        where = describe((await store.get(paths.own(MOVED))).value)
        raise ClusterMovedError(
            f"the cluster's metadata have moved to {where.get('to', 'another store')}: use that address"
        )
    if COPIED in names:
        return Lineage.decode((await store.get(paths.own(COPIED))).value)
    return Lineage()


def describe(value: bytes) -> dict[str, Any]:
    """The JSON object in ``moved`` or ``copying``; empty if the value is none."""
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
