"""A cluster's metadata may move to another store; what is kept so that nobody mistakes the old place for the new one.

All of it is our own state beside the root, and written by copying.py:

=============  ============================================================================================
``copied``     which copies led here, oldest first: an id each, and the source's transaction it included; and where
               the cluster went on from an older state than there had been (``bk metadata accept-rollback``)
``copying``    a copy into this store has begun and not ended: there is no cluster here yet
``moved``      a copy from this store has ended; the cluster's life goes on there, not here
=============  ============================================================================================

A bookie remembers the highest transaction it saw. In another store numbers begin anew; so it remembers the
copy that they belong to as well, and after a move the store must have been copied *after* what the bookie saw.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from bookkeeper.errors import ClusterMovedError, MetadataFormatError, MetadataRolledBackError, NoSuchKeyError
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store import MetadataStore

COPIED: Final = "copied"
COPYING: Final = "copying"
MOVED: Final = "moved"


@dataclass(frozen=True, slots=True)
class AcceptedLoss:
    """The contents went on from an older state, because an operator has said so."""

    highest: int
    """No ledger id above this was found anywhere; -1: none at all."""
    keep_s: int
    """For so long bookies keep ledgers up to there that metadata do not know."""


@dataclass(frozen=True, slots=True)
class StoreMove:
    """One move."""

    id: str
    """Random; names the store's contents from then on."""
    transaction: int
    """The source's newest transaction when it was copied; of a loss, the store's own."""
    loss: AcceptedLoss | None = None
    """What was seen before is not required any more."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """The moves that led to a store."""

    copies: tuple[StoreMove, ...] = ()

    @property
    def id(self) -> str:
        """The last move's; empty for a cluster that was made here."""
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
        except (ValueError, TypeError, KeyError) as error:
            raise MetadataFormatError(f"the record of copies cannot be read: {data[:100]!r}") from error

    def mark(self, transaction: int) -> bytes:
        """What a bookie writes down after it saw ``transaction`` here."""
        return f"{transaction} {self.id}".rstrip().encode() + b"\n"

    def must_have_seen(self, mark: bytes) -> int:
        """The transaction this store must show, by what was written down; 0 if it began after that.

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
                f"this bookie knows its metadata as copy {name}, which this store does not come from: "
                "it shows the cluster as it was before it moved"
            )
        copied = self.copies[names.index(name)]
        if seen > copied.transaction:
            raise MetadataRolledBackError(
                f"transaction {seen} was seen before this store was copied, the copy ends at {copied.transaction}"
            )
        return 0


def _copy(name: str, transaction: int, loss: Mapping[str, int] | None = None) -> StoreMove:
    lost = None if loss is None else AcceptedLoss(int(loss["highest"]), int(loss["keep_s"]))
    return StoreMove(str(name), int(transaction), lost)


async def read(store: MetadataStore, paths: Paths) -> Lineage:
    """Where a store's contents come from.

    Raises:
        ClusterMovedError: they have moved on, or have not arrived yet.
    """
    try:
        names = await store.children(paths.own_root)
    except NoSuchKeyError:
        return Lineage()
    if COPYING in names:
        raise ClusterMovedError(
            f"a copy into {paths.root} has begun and not ended: run the same `bk metadata copy` with --resume"
        )
    if MOVED in names:
        where = describe((await store.get(paths.own(MOVED))).value)
        raise ClusterMovedError(f"the cluster's metadata have moved to {where.get('to', 'another store')}")
    if COPIED in names:
        return Lineage.decode((await store.get(paths.own(COPIED))).value)
    return Lineage()


def describe(value: bytes) -> dict[str, Any]:
    """The JSON object of ``moved`` and ``copying``; empty if it is none."""
    try:
        found = json.loads(value)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
