"""What ``bk metadata accept-rollback`` changes in the store, so that the cluster goes on from an older state.

    ids       the generator continues above every id that was found, or far above if not every bookie was asked
    open      one transaction enters the loss into the record of the store's origin (lineage)

The second step stops connected clients and bookies, and lets bookies start that have seen a newer state. A run that was
killed in between can be repeated; ids that were skipped stay unused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bookkeeper.errors import IllegalOperationError, KeyExistsError, MetadataConflictError
from bookkeeper.meta.cluster import Metadata
from bookkeeper.meta.records import lineage as lineages
from bookkeeper.meta.records.layout import SHORT_MAX, Layout
from bookkeeper.meta.records.ledger_ids import high_halves
from bookkeeper.meta.records.lineage import COPIED, AcceptedLoss, Lineage, StoreMove
from bookkeeper.meta.store import ensure_created, get_or_none, names_below, settled_create, settled_set
from bookkeeper.meta.store_copy import BURNT_MAX
from bookkeeper.meta.store_steps import burn_ids, probe

HIGH_MAX: Final = (1 << 31) - 1
UNSEEN: Final = 1024
"""High parts of long ids that are skipped for bookies that could not be asked."""


async def accept(metadata: Metadata, *, new_id: str, used: Sequence[int], keep_s: int, unasked: bool) -> int:
    """Let the cluster go on from what its metadata show. Returns the lowest ledger id that it can give out.

    Args:
        new_id: a random name for the store's contents from now on.
        used: ids that the bookies hold or have dropped; they are not given out again.
        keep_s: seconds for which bookies keep ledgers up to the highest of these ids that are in no metadata.
        unasked: whether a bookie was not asked, which may hold greater ids.

    Raises:
        IllegalOperationError: ``unasked``, and the layout's ids are too short to skip unknown ones.
        ClusterMovedError: the cluster has moved to another store.
        MetadataConflictError: somebody else accepts a loss at the same time.
    """
    store, paths = metadata.store, metadata.paths
    came = await lineages.read(store, paths)
    highest = max(used, default=-1)
    first = await _raise_ids(metadata, highest, unasked=unasked)
    loss = StoreMove(new_id, store.last_transaction, AcceptedLoss(highest, keep_s))
    value, path = Lineage((*came.copies, loss)).encode(), paths.own(COPIED)
    if (found := await get_or_none(store, path)) is None:
        try:
            await settled_create(store, path, value, parents=True)
        except KeyExistsError as error:
            raise _meanwhile() from error
    elif Lineage.decode(found.value) == came:
        await settled_set(store, path, value, found.version)
    else:
        raise _meanwhile()
    return first


def _meanwhile() -> MetadataConflictError:
    return MetadataConflictError(
        "somebody else has accepted a loss or moved the metadata meanwhile: look at the cluster, then run this again"
    )


async def _raise_ids(metadata: Metadata, highest: int, *, unasked: bool) -> int:
    store, paths, layout = metadata.store, metadata.paths, metadata.layout
    short_only = layout in (Layout.FLAT, Layout.LEGACY_HIERARCHICAL)
    if short_only and unasked:
        raise IllegalOperationError(
            f"a cluster with the layout {layout.name.lower()} has no spare ledger ids to skip those of a bookie that "
            "was not asked: every bookie must be asked"
        )
    hobs = high_halves(await names_below(store, paths.long_id_generator))
    parent = paths.root if layout is Layout.FLAT else paths.id_generator
    if not hobs and not unasked and highest < SHORT_MAX:
        if await store.exists(parent) is None:
            await settled_create(store, parent, b"", parents=True)
        now = await probe(store, parent)
        if short_only or highest - now <= BURNT_MAX:
            return await burn_ids(store, parent, now, highest) + 1
    high = max([*hobs, highest >> 32, 0]) + 1 + (UNSEEN if unasked else 0)
    if high > HIGH_MAX:  # a client chose ids near the end: continue where the generator is
        high = max([0, *hobs]) + 1 + (UNSEEN if unasked else 0)
    await ensure_created(store, paths.long_ids(high))
    return high << 32
