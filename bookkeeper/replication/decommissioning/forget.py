"""Forget bookies that hold nothing: remove their cookies, so that the cluster no longer knows them.

    * A bookie is forgotten only if no ledger's metadata name it and it is not registered. The very write that removes
      the cookie checks that it is not registered; a bookie of ours registers only while it has a cookie. A bookie that
      was started while the ledgers were read is not forgotten, because it may have been given some. Nor is one that a
      new ledger has named since although it was absent (``when_short``): the transaction that names it counts this,
      and fails once the cookie is gone.

    * A ledger that is deleted and can still be brought back counts as one that names its bookies, unless its copies are
      given up by order. Such ledgers are looked at before the living ones and after them: one that is brought back
      meanwhile is among the former.

A writer with an old list of bookies may still choose the bookie in the moment between. Such a ledger lacks one copy, as
with any dead bookie. The directory keeps its cookie: a bookie that is started on it again refuses to start, because the
cluster does not know it any more.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.operators import Operator, no_bookie
from bookkeeper.errors import (
    BookKeeperError,
    IllegalOperationError,
    MetadataConflictError,
    MetadataFormatError,
    NoSuchKeyError,
)
from bookkeeper.ids import BookieId, LedgerId, some_of
from bookkeeper.meta import Version
from bookkeeper.replication.decommissioning.deleted_copies import deleted_copies, in_words

SHOWN: Final = 10
"""Ledgers that an error message names at most."""


@dataclass(slots=True)
class ForgottenBookies:
    """The result of :func:`forget`."""

    bookies: tuple[BookieId, ...]
    ledgers: int = 0
    """How many ledgers were read; none of them names one of the bookies."""
    removed: list[BookieId] = field(default_factory=list)
    given_up: list[LedgerId] = field(default_factory=list)
    """Deleted ledgers that can still be brought back, and that had copies on the bookies."""


async def forget(
    client: BookKeeper,
    bookies: Sequence[str],
    on_progress: Callable[[int], None] = lambda ledgers: None,
    *,
    give_up_deleted: bool = False,
    dry_run: bool = False,
) -> ForgottenBookies:
    """Remove the cookies of drained bookies. If one of them may not be forgotten, none is.

    Args:
        on_progress: called with the number of ledgers that were read.
        give_up_deleted: forget them, too, if they have copies of deleted ledgers that can still be brought back.
        dry_run: only look whether they may be forgotten; nothing is changed.

    Raises:
        IllegalOperationError: a bookie is not known; it is registered, before or after all ledgers were read; a ledger
            names it, or a deleted one that can still be brought back; or the metadata of a ledger cannot be read. The
            message says which bookies were forgotten before: none, unless one of them was just started.
        MetadataError: the ledgers cannot be listed, or (MetadataUnavailableError) the store does not answer.
    """
    done = ForgottenBookies(tuple(dict.fromkeys(BookieId(bookie) for bookie in bookies)))
    if not done.bookies:
        raise IllegalOperationError("no bookie was named")
    versions = {bookie: await _cookie_of(client, bookie) for bookie in done.bookies}
    starts = {bookie: await _starts_of(client, bookie) for bookie in done.bookies}
    named = {bookie: await client.services.metadata.bookies.times_named(bookie) for bookie in done.bookies}
    disks = {bookie: await client.services.metadata.disks.version(bookie) for bookie in done.bookies}
    await _refuse_registered(client, done.bookies)
    await _refuse_deleted(client, done, give_up_deleted)
    await _refuse_named(client, done, on_progress)
    await _refuse_deleted(client, done, give_up_deleted)
    if dry_run:
        return done
    for bookie, version in versions.items():
        try:
            if await _starts_of(client, bookie) != starts[bookie]:
                raise IllegalOperationError(
                    f"{bookie} was started while the ledgers were read, and new ones may name it: drain and stop it, "
                    "then try again"
                )
            await client.services.metadata.bookies.forget(bookie, version, named[bookie])
            await _forget_disk(client, bookie, disks[bookie])
        except BookKeeperError as error:
            if done.removed:
                error.add_note(f"forgotten before: {', '.join(done.removed)}")
            raise
        done.removed.append(bookie)
    return done


async def _cookie_of(client: BookKeeper, bookie: BookieId) -> Version:
    """The version of a bookie's cookie, also of one that cannot be read."""
    metadata = client.services.metadata
    try:
        return (await metadata.cookies.read(bookie)).version
    except MetadataFormatError:  # a cookie that cannot be read is one
        found = await metadata.store.exists(metadata.paths.cookie(bookie))
        if found is not None:
            return found
    except NoSuchKeyError:
        pass
    raise no_bookie(bookie, await metadata.cookies.known())


async def _starts_of(client: BookKeeper, bookie: BookieId) -> Version | None:
    """A version that changes with every start of the bookie; None for Apache's bookies, which leave no such trace."""
    metadata = client.services.metadata
    path = metadata.own("boot", bookie)
    await metadata.store.sync(path)
    return await metadata.store.exists(path)


async def _forget_disk(client: BookKeeper, bookie: BookieId, version: Version | None) -> None:
    """Remove the record of the bookie's disk, too, unless a new bookie has joined under the id meanwhile."""
    if version is not None:
        with contextlib.suppress(NoSuchKeyError, MetadataConflictError):
            await client.services.metadata.disks.forget(bookie, version)


async def _refuse_registered(client: BookKeeper, bookies: Sequence[BookieId]) -> None:
    operator = Operator(client)
    for state, present in (
        ("writable", await operator.writable_bookies()),
        ("read-only", await operator.read_only_bookies()),
    ):
        for bookie in bookies:
            if bookie in present:
                raise IllegalOperationError(
                    f"{bookie} is registered ({state}): drain it, stop it, and forget it then. A bookie that was "
                    "killed stays registered until its session ends"
                )


async def _refuse_named(client: BookKeeper, done: ForgottenBookies, on_progress: Callable[[int], None]) -> None:
    """Read every ledger's metadata after a sync. Raises IllegalOperationError if one names a bookie."""
    naming: dict[BookieId, list[LedgerId]] = {}
    async for ledger_id, found in Operator(client).all_metadata():
        if isinstance(found, BookKeeperError):
            raise IllegalOperationError(
                f"ledger {ledger_id} may name {' or '.join(done.bookies)}, but its metadata cannot be read: {found}"
            ) from found
        for bookie in done.bookies:
            if bookie in found.bookies:
                naming.setdefault(bookie, []).append(ledger_id)
        done.ledgers += 1
        on_progress(done.ledgers)
    if naming:
        holders = "; ".join(f"{bookie} still has {_some(ledgers)}" for bookie, ledgers in naming.items())
        raise IllegalOperationError(f"{holders}: `bk bookies drain {' '.join(naming)}` moves them elsewhere")


async def _refuse_deleted(client: BookKeeper, done: ForgottenBookies, give_up: bool) -> None:
    """Raises IllegalOperationError if a deleted ledger that can be brought back names a bookie, and is not given up."""
    found = await deleted_copies(client, done.bookies)
    if found and not give_up:
        raise IllegalOperationError(in_words(found))
    done.given_up = sorted({*done.given_up, *(each.ledger_id for each in found)})


def _some(ledgers: Sequence[LedgerId]) -> str:
    return f"ledger{'s' if len(ledgers) > 1 else ''} {some_of(ledgers, SHOWN)}"
