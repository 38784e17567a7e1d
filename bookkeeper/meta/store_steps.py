"""Steps with a whole store: walk through it, do a transaction for certain, use ids up, refuse a cluster in use."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from bookkeeper.errors import (
    NoSuchKeyError,
    SessionsLiveError,
)
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store import (
    OUTCOME_UNKNOWN,
    Check,
    Create,
    Delete,
    MetadataStore,
    Operation,
    Set,
    get_or_none,
    names_below,
)

AT_ONCE: Final = 64
"""How many reads are in flight."""
BATCH_OPERATIONS: Final = 200
BATCH_BYTES: Final = 256 * 1024

_LEDGER = re.compile(r"[/\d]*/L\d+")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ClusterLocation:
    """A cluster's place in a store."""

    store: MetadataStore
    paths: Paths
    name: str
    """Its address, for messages and marks."""

    def at(self, rest: str) -> str:
        """The path with this ``rest`` behind the root's name: ``/00/0000/L0000`` or ``-py/boot/b1``."""
        return self.paths.root + rest

    def own(self, name: str) -> str:
        """The rest of a mark of ours."""
        return self.paths.own(name)[len(self.paths.root) :]


async def refuse_live(place: ClusterLocation) -> None:
    """Raise SessionsLiveError if someone uses the cluster, as far as can be seen: bookies, lock holders, sessions."""
    others = getattr(place.store, "other_sessions", None)
    if others is not None and (count := await others()):
        raise SessionsLiveError(
            f"{count} other process{'es use' if count > 1 else ' uses'} {place.name}: stop them first"
        )
    async for path in walk(place.store, (place.paths.root, place.paths.own_root)):
        if is_ledger(path[len(place.paths.root) :]):
            continue
        try:
            owner = await place.store.owner(path)
        except NoSuchKeyError:
            continue
        if owner is not None and owner != place.store.session_id:
            raise SessionsLiveError(
                f"somebody uses {place.name}: {path} belongs to a live session; stop that process first"
            )


async def probe(store: MetadataStore, parent: str) -> int:
    """The next number of a generator. Reading it uses it up."""
    while True:
        try:
            path, _ = await store.create(f"{parent}/ID-", ephemeral=True, sequential=True)
        except OUTCOME_UNKNOWN:
            await store.sync(parent)
            continue
        await settle(store, [Delete(path, None)], again=True)
        return int(path.rpartition("-")[2])


async def burn_ids(
    store: MetadataStore,
    parent: str,
    now: int,
    wanted: int,
    conditions: Sequence[Check] = (),
    reached: Callable[[int], None] = lambda now: None,
) -> int:
    """Use up the numbers below a path up to ``wanted``; ``now`` is the last one so far. Returns the last one then.

    Raises:
        MetadataConflictError, NoSuchKeyError: a condition does not hold.
    """
    while now < wanted:
        count = min(BATCH_OPERATIONS // 2, wanted - now)
        burn: list[Operation] = [Create(f"{parent}/burnt"), Delete(f"{parent}/burnt", None)]
        await settle(store, [*conditions, *burn * count], again=True)
        now = await probe(store, parent)
        reached(now)
    return now


async def settle(store: MetadataStore, operations: Sequence[Operation], *, again: bool = False) -> None:
    """Perform a transaction, and return when it is done.

    After a lost reply its creations tell whether it was done; otherwise it is sent again. With ``again`` it does no
    harm to send it twice, or not at all.
    """
    while True:
        try:
            await store.multi(operations)
            return
        except OUTCOME_UNKNOWN:
            await store.sync("/")
            if again:
                return
            if all([await store.exists(each.path) is not None for each in operations if isinstance(each, Create)]):
                return


async def walk(store: MetadataStore, roots: Iterable[str]) -> AsyncIterator[str]:
    """All paths at and below ``roots``, level by level."""
    level = [(root, "") for root in roots if await store.exists(root) is not None]
    while level:
        following: list[tuple[str, str]] = []
        for chunk in chunks(level, AT_ONCE):
            found = await asyncio.gather(*(names_below(store, root + rest) for root, rest in chunk))
            for (root, rest), names in zip(chunk, found, strict=True):
                yield root + rest
                following += [(root, f"{rest}/{name}") for name in names]
        for ledger in (root + rest for root, rest in following if is_ledger(rest)):  # nothing is below it
            yield ledger
        level = [each for each in following if not is_ledger(each[1])]


async def values_of(store: MetadataStore, paths: Sequence[str]) -> dict[str, bytes | None]:
    found = await asyncio.gather(*(get_or_none(store, path) for path in paths))
    return {path: each.value if each is not None else None for path, each in zip(paths, found, strict=True)}


def is_ledger(rest: str) -> bool:
    """Whether a path is that of a ledger, by what comes behind the root's name."""
    return _LEDGER.fullmatch(rest) is not None


def chunks(items: Sequence[T], size: int) -> Iterable[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def batches(operations: Sequence[Operation]) -> Iterable[list[Operation]]:
    batch: list[Operation] = []
    room = BATCH_BYTES
    for operation in operations:
        size = len(operation.value) if isinstance(operation, Create | Set) else 0
        if batch and (len(batch) == BATCH_OPERATIONS or size > room):
            yield batch
            batch, room = [], BATCH_BYTES
        batch.append(operation)
        room -= size
    if batch:
        yield batch
