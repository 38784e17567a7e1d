"""Moves a cluster's metadata to another store, while nobody uses the cluster.

    look      refuse if anyone is registered at the source or the target, or if the target is not empty
    copy      copy every value that is not ephemeral, below the root and below ``<root>-py``
    ids       let the target's generator continue above every id that was ever issued at the source
    close     mark the source as moved: it refuses every new connection
    verify    after a sync on both sides, list and read everything again and compare byte for byte
    open      in one transaction create the cluster's id at the target, and the record of its origin (lineage)

A run that was killed at any moment can be repeated with ``resume`` and ends the same: values that exist are compared,
not trusted. Until *open* there is no cluster at the target, and until *close* the source is unchanged.

Two runs may meet: one was paused, or somebody copies elsewhere. Both stores must never be open, or ids would be issued
twice. So only the run that claimed the target last writes to it and opens it; every such transaction checks the version
of ``copying``. After a comparison that failed, the source is opened again only by a run that has just claimed the
target once more, so that nobody else can open it, and whose mark (the value of ``moved``) closes the source.

A copy cannot keep two things: versions begin at 0, and a ledger's time of creation is the copy's unless its metadata
have it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from bookkeeper.errors import (
    ClusterExistsError,
    KeyExistsError,
    MetadataConflictError,
    MetadataError,
    MetadataUnavailableError,
    NoClusterError,
    NoSuchKeyError,
)
from bookkeeper.meta.records import layout as layouts
from bookkeeper.meta.records import lineage
from bookkeeper.meta.records.layout import Layout
from bookkeeper.meta.records.ledger_ids import high_halves
from bookkeeper.meta.records.lineage import COPIED, COPYING, MOVED, Lineage, StoreMove
from bookkeeper.meta.store import (
    OUTCOME_UNKNOWN,
    Check,
    Create,
    Delete,
    Operation,
    Set,
    Version,
    Versioned,
    ensure_created,
    get_or_none,
    settled_create,
    settled_set,
)
from bookkeeper.meta.store_steps import (
    AT_ONCE,
    ClusterLocation,
    batches,
    burn_ids,
    chunks,
    is_ledger,
    probe,
    refuse_live,
    settle,
    values_of,
    walk,
)

BURNT_MAX: Final = 200_000
"""How many numbers of a generator are skipped one by one; for more the copy begins with long ids."""
BEYOND_BACKUP: Final = 1024
"""How many high halves of long ids a restored cluster skips; each has 2,147,483,648 ids."""
TRIES: Final = 5

_NUMBER = re.compile(r"(/idgen|/idgen-long/HOB-\d{10})?/ID-\d{10}")
"""A generator's value, which ends with the session that made it. Bookies, streams and journals have such names, too."""


Progress = Callable[[str, int, int], None]
"""Called with the step, how much of it is done, and of how much (0: unknown)."""


@dataclass(slots=True)
class CopyReport:
    """The result of a copy."""

    values: int = 0
    bytes: int = 0
    ledgers: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    """How many values below each name: ``cookies``, ``journals``, ``underreplication`` ..."""
    next_id: str = ""
    instance_id: str = ""
    already: bool = False
    """Whether an earlier run had finished the copy, so that nothing was left to do."""


class StoreCopy:
    """One run. ``new_id``: a random name for the copy.

    ``backup_of``: the source holds a backup, and the cluster may have gone on after this transaction of its store. Then
    whoever has seen a later one is told so, and new ids begin far above all that the backup knows. ``backup_name``
    tells it from other backups of the cluster.
    """

    def __init__(
        self,
        source: ClusterLocation,
        target: ClusterLocation,
        *,
        new_id: str,
        progress: Progress,
        backup_of: int | None = None,
        backup_name: str = "",
    ) -> None:
        self._backup_of, self._backup_name = backup_of, backup_name
        self._source = source
        self._target = target
        self._new_id = new_id
        self._progress = progress
        self._extra: set[str] = set()
        self._report = CopyReport()
        self._claim = Version(0)
        """The version of ``copying`` with which this run has claimed the target."""
        self._begun = b""
        """The value of ``copying`` that this run has written."""
        self._closed_by: bytes | None = None
        """The mark with which this run has closed the source."""

    async def run(self, *, resume: bool = False) -> CopyReport:
        """Perform the steps that the module lists.

        Raises:
            NoClusterError: there is no cluster at the source.
            ClusterExistsError: the target is not empty.
            SessionsLiveError: someone uses the source or the target.
            MetadataError: the source changed meanwhile, or the copy differs from it; the message says where.
        """
        source, target = self._source, self._target
        instance_id = await self._inspect(resume)
        self._report.instance_id = instance_id
        if self._report.already:
            return self._report
        rests = await self._list(source, "listing")
        await self._copy(rests)
        self._report.next_id = await self._ids(rests)
        try:
            newest = await self._close(instance_id)
            await self._verify()
        except MetadataError:
            with contextlib.suppress(MetadataError):
                await self._reopen()
            raise
        came = Lineage((*(await self._came()).copies, StoreMove(self._new_id, newest)))
        try:
            await settle(
                target.store,
                [
                    Delete(target.paths.own(COPYING), self._claim),
                    Create(target.paths.instance_id, instance_id.encode()),
                    Create(target.paths.own(COPIED), came.encode()),
                ],
            )
        except (MetadataConflictError, NoSuchKeyError) as error:
            raise self._taken_over() from error
        return self._report

    # -- look ----------------------------------------------------------------------------------------------

    async def _inspect(self, resume: bool) -> str:
        source, target = self._source, self._target
        for place in (source, target):
            await place.store.sync("/")
            await settle(place.store, [], again=True)  # this write removes the values of sessions that have ended
        try:
            instance_id = (await source.store.get(source.paths.instance_id)).value.decode()
        except NoSuchKeyError as error:
            raise NoClusterError(f"there is no cluster at {source.name}") from error
        for place in (source, target):
            await refuse_live(place)
        about = {"from": source.name, "instance_id": instance_id, "by": self._new_id}
        begun = json.dumps({**about, **({"backup": self._backup_name} if self._backup_name else {})}).encode()
        self._begun = begun
        there = await self._there()
        if there is not None and not resume:
            raise ClusterExistsError(f"a copy into {target.name} has begun and not ended: continue it with --resume")
        if there is not None and lineage.describe(there.value).get("instance_id") != instance_id:
            text = there.value.decode(errors="replace")
            raise ClusterExistsError(f"another copy into {target.name} has begun: {text}")
        if there is not None and lineage.describe(there.value).get("backup", self._backup_name) != self._backup_name:
            raise ClusterExistsError(
                f"another backup of this cluster is being put back into {target.name}: continue with the file that it "
                "began with, or put this one into an empty place"
            )
        if there is not None:
            try:
                self._claim = await settled_set(target.store, target.paths.own(COPYING), begun, there.version)
            except (MetadataConflictError, NoSuchKeyError) as error:
                raise self._taken_over() from error
        else:
            if await self._complete(instance_id):
                self._report.already = True
                return instance_id
            if await source.store.exists(source.paths.own(MOVED)) is not None:
                raise ClusterExistsError(f"the cluster at {source.name} has moved already: copy it from its new store")
            for path in (target.paths.root, target.paths.own_root):
                if await target.store.exists(path) is not None:
                    raise ClusterExistsError(
                        f"{target.name} is not empty: {path} exists, and was left as it is; copy into an empty place"
                    )
            try:
                self._claim = await settled_create(target.store, target.paths.own(COPYING), begun, parents=True)
            except KeyExistsError as error:
                raise ClusterExistsError(f"another copy into {target.name} has begun just now") from error
        return instance_id

    async def _there(self) -> Versioned[bytes] | None:
        return await get_or_none(self._target.store, self._target.paths.own(COPYING))

    @property
    def _ours(self) -> Check:
        """The condition of a transaction that this run may still write to the target."""
        return Check(self._target.paths.own(COPYING), self._claim)

    async def _check_ours(self) -> None:
        """Raises: MetadataError: another run has taken over, and may have ended."""
        there = await self._there()
        if there is None or there.version != self._claim:
            raise self._taken_over()

    def _taken_over(self) -> MetadataError:
        return MetadataError(
            f"the copy into {self._target.name} was taken over by another run of this command, which ends it; "
            "this run opened neither side"
        )

    async def _complete(self, instance_id: str) -> bool:
        """Whether an earlier run has finished this very copy: the source names the target, and the cluster is there."""
        source, target = self._source, self._target
        try:
            moved = lineage.describe((await source.store.get(source.paths.own(MOVED))).value)
            found = (await target.store.get(target.paths.instance_id)).value.decode()
        except NoSuchKeyError:
            return False
        return found == instance_id and moved.get("to") == target.name

    # -- copy ----------------------------------------------------------------------------------------------

    async def _copy(self, rests: list[str]) -> None:
        """Copy what is below the root, then ``<root>-py``: a bookie's count of starts is younger than its cookie."""
        own = [rest for rest in rests if rest.startswith(self._source.own(""))]
        below = [rest for rest in rests if not rest.startswith(self._source.own(""))]
        done = 0
        for part in (below, own):
            for chunk in chunks(part, AT_ONCE):
                await self._copy_chunk(chunk)
                done += len(chunk)
                self._progress("copying", done, len(rests))

    async def _copy_chunk(self, rests: Sequence[str]) -> None:
        source, target = self._source, self._target
        values = await asyncio.gather(*(source.store.get(source.at(rest)) for rest in rests))
        wanted = {target.at(rest): found.value for rest, found in zip(rests, values, strict=True)}
        for _ in range(TRIES):
            there = await values_of(target.store, list(wanted))
            missing: list[Operation] = [
                Create(path, value) if there[path] is None else Set(path, value, None)
                for path, value in wanted.items()
                if there[path] != value
            ]
            if not missing:
                break
            try:
                for batch in batches(missing):
                    await target.store.multi([self._ours, *batch])
            except (*OUTCOME_UNKNOWN, KeyExistsError, NoSuchKeyError, MetadataConflictError):
                await target.store.sync(target.paths.root)
                await self._check_ours()
        else:
            raise MetadataUnavailableError(
                f"{next(iter(wanted))} could not be written to {target.name}; run this again with --resume"
            )
        for rest, found in zip(rests, values, strict=True):
            self._count(rest, len(found.value))

    def _count(self, rest: str, size: int) -> None:
        report = self._report
        report.values += 1
        report.bytes += size
        if is_ledger(rest):
            report.ledgers += 1
            return
        parts = rest.removeprefix("-py").split("/")
        if len(parts) > 2 and not parts[1].isdecimal():
            report.kinds[parts[1]] = report.kinds.get(parts[1], 0) + 1

    # -- ids ------------------------------------------------------------------------------------------

    async def _ids(self, rests: list[str]) -> str:
        source, target = self._source, self._target
        await self._check_ours()
        layout = Layout.HIERARCHICAL
        if "/LAYOUT" in rests:
            layout = layouts.decode((await source.store.get(source.paths.layout)).value)
        hobs = high_halves(rest.rpartition("/")[2] for rest in rests)
        long_ids = layout in (Layout.HIERARCHICAL, Layout.LONG_HIERARCHICAL)
        if self._backup_of is not None and long_ids:
            return await self._begin_long(max(hobs, default=0) + BEYOND_BACKUP)
        if hobs or await source.store.exists(source.paths.long_id_generator) is not None:
            return await self._begin_long(max(hobs, default=0) + 1)
        parent = source.paths.root if layout is Layout.FLAT else source.paths.id_generator
        if await source.store.exists(parent) is None:
            return "0"
        wanted = await probe(source.store, parent)
        there = target.at(parent[len(source.paths.root) :])
        now = await probe(target.store, there)
        if long_ids and (wanted - now > BURNT_MAX or wanted < 0):
            return await self._begin_long(1)

        def reached(at: int) -> None:
            self._progress("ids", at - now, wanted - now)

        try:
            last = await burn_ids(target.store, there, now, wanted, [self._ours], reached)
        except (MetadataConflictError, NoSuchKeyError) as error:
            raise self._taken_over() from error
        return str(last + 1)

    async def _begin_long(self, high: int) -> str:
        """Begin with long ids whose high bits were never used, so that nothing has to be skipped."""
        path = self._target.paths.long_ids(high)
        await ensure_created(self._target.store, path)
        for extra in (path, self._target.paths.long_id_generator):
            self._extra.add(extra[len(self._target.paths.root) :])
        return str(high << 32)

    # -- close and verify ----------------------------------------------------------------------------------

    async def _close(self, instance_id: str) -> int:
        """Mark the source as moved. Returns the newest transaction that the copy must show."""
        source, target = self._source, self._target
        await self._check_ours()
        path = source.paths.own(MOVED)
        moved = json.dumps({"to": target.name, "instance_id": instance_id, "by": self._new_id}).encode()
        try:
            await settled_create(source.store, path, moved, parents=True)
        except KeyExistsError as error:
            found = await source.store.get(path)
            if lineage.describe(found.value).get("to") != target.name:
                raise ClusterExistsError(
                    f"the cluster at {source.name} has moved to another store, or another copy moves it"
                ) from error
            await settled_set(source.store, path, moved, found.version)  # replaces the mark of an earlier run
        self._closed_by = moved
        await refuse_live(source)
        return source.store.last_transaction if self._backup_of is None else self._backup_of

    async def _reopen(self) -> None:
        """Open the source again, unless another run has closed it or has claimed the target meanwhile. That run may
        have opened the target; a run that claims it from now on closes the source anew."""
        source, target = self._source, self._target
        self._claim = await settled_set(target.store, target.paths.own(COPYING), self._begun, self._claim)
        found = await source.store.get(source.paths.own(MOVED))
        if found.value == self._closed_by:
            await source.store.delete(source.paths.own(MOVED), found.version)

    async def _verify(self) -> None:
        source, target = self._source, self._target
        for place in (source, target):
            await place.store.sync("/")
        here, there = set(await self._list(source, "verifying")), set(await self._list(target, "verifying"))
        unlike = sorted(here ^ (there - (self._extra - here)))
        if unlike:
            raise self._changed(f"{unlike[0]} exists only at {(source if unlike[0] in here else target).name}")
        rests = sorted(here)
        for index, chunk in enumerate(chunks(rests, AT_ONCE)):
            ours = await values_of(source.store, [source.at(rest) for rest in chunk])
            theirs = await values_of(target.store, [target.at(rest) for rest in chunk])
            for rest in chunk:
                if ours[source.at(rest)] != theirs[target.at(rest)]:
                    raise self._changed(f"{rest} differs")
            self._progress("verifying", index * AT_ONCE + len(chunk), len(rests))

    def _changed(self, what: str) -> MetadataError:
        if self._backup_of is not None:
            return MetadataError(
                f"{what}: {self._target.name} holds something else than this backup. The restoration began with "
                "another file, or somebody writes there: empty the place, and begin anew without --resume"
            )
        return MetadataError(
            f"{what}: somebody wrote while the metadata were copied. The cluster stays at {self._source.name}; stop "
            "everyone who uses it, then run this again with --resume"
        )

    async def _came(self) -> Lineage:
        found = await get_or_none(self._source.store, self._source.paths.own(COPIED))
        return Lineage.decode(found.value) if found is not None else Lineage()

    async def _list(self, place: ClusterLocation, what: str) -> list[str]:
        """The rest of every path to copy, parents first."""
        skipped = {place.own(name) for name in (COPIED, COPYING, MOVED)} | {"/INSTANCEID"}
        found: list[str] = []
        async for path in walk(place.store, (place.paths.root, place.paths.own_root)):
            rest = path[len(place.paths.root) :]
            if rest not in skipped and not _NUMBER.fullmatch(rest):
                found.append(rest)
                if len(found) % 1000 == 0:
                    self._progress(what, len(found), 0)
        return sorted(found)
