"""Forgetting bookies that hold nothing: their cookies go, and they are no longer known to the cluster.

    * A bookie is forgotten only when no ledger's metadata name it and it is not registered; that it is not is found
      in the very write that removes the cookie. A bookie of ours is registered only while it has one, and one that
      was started while the ledgers were looked at is not forgotten: it may have been given some. Nor is one that a
      new ledger has named since, though it was absent (``when_short``): who names it does so in a transaction that
      counts this, and that fails once the cookie is gone.

A writer whose list of bookies is old may still choose it in the moment between: such a ledger has nothing there, and
lacks a copy as with any bookie that is dead. The directory keeps its cookie: a bookie that is started on it again
refuses, since the cluster does not know it any more.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.operators import Operator
from bookkeeper.errors import (
    BookKeeperError,
    IllegalOperationError,
    MetadataConflictError,
    MetadataFormatError,
    NoSuchKeyError,
)
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.meta import Version

SHOWN: Final = 10
"""Ledgers that a refusal names."""


@dataclass(slots=True)
class ForgottenBookies:
    """What :func:`forget` did."""

    bookies: tuple[BookieId, ...]
    ledgers: int = 0
    """Looked at: none of them names one of the bookies."""
    removed: list[BookieId] = field(default_factory=list)


async def forget(
    client: BookKeeper, bookies: Sequence[str], on_progress: Callable[[int], None] = lambda ledgers: None
) -> ForgottenBookies:
    """Remove the cookies of drained bookies. Either all of them may be forgotten, or none is.

    Args:
        on_progress: told how many ledgers were looked at.

    Raises:
        IllegalOperationError: nobody knows such a bookie; it is registered, before or after the look at all ledgers;
            a ledger names it; or the metadata of a ledger cannot be read, so that it cannot be told. The message says
            which bookies were forgotten before, which is none unless one of them was just started.
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
    await _refuse_named(client, done, on_progress)
    for bookie, version in versions.items():
        try:
            if await _starts_of(client, bookie) != starts[bookie]:
                raise IllegalOperationError(
                    f"{bookie} was started while the ledgers were looked at, and may have been given some: try again"
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
    """The version of a cookie, whatever is in it."""
    metadata = client.services.metadata
    try:
        return (await metadata.cookies.read(bookie)).version
    except MetadataFormatError:  # a cookie that cannot be read is one
        found = await metadata.store.exists(metadata.paths.cookie(bookie))
        if found is not None:
            return found
    except NoSuchKeyError:
        pass
    known = await metadata.cookies.known()
    raise IllegalOperationError(f"no bookie {bookie} has a cookie: known are {', '.join(known) or 'none'}")


async def _starts_of(client: BookKeeper, bookie: BookieId) -> Version | None:
    """Changes with every start of a bookie of ours; Apache's bookies leave no such trace."""
    metadata = client.services.metadata
    path = metadata.own("boot", bookie)
    await metadata.store.sync(path)
    return await metadata.store.exists(path)


async def _forget_disk(client: BookKeeper, bookie: BookieId, version: Version | None) -> None:
    """What was known of its disk goes, too, unless somebody has joined under the id at once."""
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
                    f"{bookie} is registered ({state}): drain it, stop it, and forget it then. One that was killed is "
                    "registered until its session ends"
                )


async def _refuse_named(client: BookKeeper, done: ForgottenBookies, on_progress: Callable[[int], None]) -> None:
    """Look at every ledger's metadata, as of a sync at the start."""
    naming: dict[BookieId, list[LedgerId]] = {}
    async for ledger_id, found in Operator(client).all_metadata():
        if isinstance(found, BookKeeperError):
            raise IllegalOperationError(
                f"whether ledger {ledger_id} names {' or '.join(done.bookies)} cannot be told, its metadata cannot be "
                f"read: {found}"
            ) from found
        for bookie in done.bookies:
            if bookie in found.bookies:
                naming.setdefault(bookie, []).append(ledger_id)
        done.ledgers += 1
        on_progress(done.ledgers)
    if naming:
        told = "; ".join(f"{bookie} is named by {_some(ledgers)}" for bookie, ledgers in naming.items())
        raise IllegalOperationError(f"{told}: `bk bookies drain {' '.join(naming)}` moves them elsewhere")


def _some(ledgers: Sequence[LedgerId]) -> str:
    shown = ", ".join(map(str, ledgers[:SHOWN]))
    if len(ledgers) > SHOWN:
        return f"ledgers {shown} and {len(ledgers) - SHOWN} more"
    return f"ledger{'s' if len(ledgers) > 1 else ''} {shown}"
