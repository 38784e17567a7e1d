"""Keeps the owners of ledgers on the bookie's disk (:mod:`~bookkeeper.bookie.identity.owner_file`).

    collected     while the file is written and synced; the next group has all of them
    durable       in the file, and synced: only now the owner is valid, and the callers are notified

One worker writes: a single new ledger costs one sync, and hundreds that come together share one. While the access
policy is off nothing is written, and there is no file.

If a write or a sync fails, its group is not valid, and the end of the file is unknown: the next group is written with
all known owners into a new file, which replaces this one.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from typing import Final

from bookkeeper.access import Resource
from bookkeeper.bookie.identity.owner_file import NAME, ReadOwners, decode_owners, encode_group
from bookkeeper.bookie.ownership.owner_map import OwnerMap
from bookkeeper.errors import BookieFailedError, in_words
from bookkeeper.ids import LedgerId
from bookkeeper.seams import Disk, File, Worker
from bookkeeper.storage.base.durable_file import replace_file, sync

log = logging.getLogger(__name__)

Done = Callable[[BaseException | None], None]

PARTS_MAX: Final = 10_000
"""A file of more parts is written anew with the next group, because it takes long to read."""

FORGET_MIN: Final = 1024
"""At least so many ledgers must be unwanted before the file is written anew without them."""


class OwnerLog:
    """The owners of one bookie's ledgers. Runs on the loop's thread, but for the jobs of its worker."""

    def __init__(self, disk: Disk, directory: str, worker: Worker) -> None:
        self._disk = disk
        self._path = os.path.join(directory, NAME)
        self._worker = worker
        self._owners = OwnerMap()
        self._collected: dict[LedgerId, Resource] = {}
        self._waiting: list[Done] = []
        self._unwanted: set[int] = set()
        """Ledgers that were not wanted at the last call of :meth:`forget`."""
        self._writing = False
        self._closed = False
        self._file: File | None = None
        self._end = 0
        """Where the next group begins."""
        self._rewrites = False
        """Whether the file is to be written anew with the next group."""

    async def read(self) -> str | None:
        """Read the file. Returns what is wrong with it; None: nothing is, or there is none.

        Raises:
            UnsupportedFormatError: it was written by a later version.
            OSError: it cannot be read.
        """
        read = await self._worker.call(self._read)
        if read is None:
            return None
        found, self._file = read
        for owner, ledgers in found.parts:
            for ledger_id in ledgers:
                self._owners.put(ledger_id, owner)
        self._end = found.end
        self._rewrites = found.damage is not None or len(found.parts) > PARTS_MAX
        return found.damage

    def _read(self) -> tuple[ReadOwners, File] | None:
        """Read the file and sync it: a killed process may not have synced what it wrote."""
        if not self._disk.exists(self._path):
            return None
        data = self._disk.read_file(self._path)
        found = decode_owners(data, self._path)
        file = self._disk.open(self._path)
        try:
            if found.end:
                file.pwrite(data[: found.end], 0)
                sync(file)
        except BaseException:
            file.close()
            raise
        return found, file

    def __len__(self) -> int:
        return len(self._owners)

    def get(self, ledger_id: LedgerId) -> Resource | None:
        """The durable owner of a ledger; None: none is kept."""
        return self._owners.get(ledger_id)

    def keep(self, ledger_id: LedgerId, owner: Resource, done: Done) -> None:
        """Replace a ledger's owner. Calls ``done`` with None when it is durable and valid, or with the error."""
        self._collected[ledger_id] = owner
        self._waiting.append(done)
        self._advance()

    def forget(self, wanted: Callable[[LedgerId], bool]) -> list[tuple[LedgerId, Resource]]:
        """Forget the owners of ledgers that are unwanted at two calls in a row, if they are many, and return them. (A
        ledger that is just being created is unwanted once.) The file is written anew with the next group."""
        known = len(self._owners)
        if known < FORGET_MIN or self._writing:
            return []
        found = self._owners.unwanted(lambda each: wanted(LedgerId(each)))
        gone = [(LedgerId(ledger), owner) for ledger, owner in found if ledger in self._unwanted]
        self._unwanted = {ledger for ledger, _ in found}
        if len(gone) < max(FORGET_MIN, known // 4):
            return []
        self._owners.forget({ledger for ledger, _ in gone})
        self._rewrites = True
        return gone

    def close(self) -> None:
        """Stop the worker and close the file. Waiting callers get BookieFailedError."""
        if self._closed:
            return
        self._closed = True
        if self._file is not None and not self._writing:
            self._file.close()
        self._worker.close()
        waiting, self._waiting = self._waiting, []
        for done in waiting:
            done(BookieFailedError("the bookie stops"))

    def _advance(self) -> None:
        if self._writing or self._closed or not self._collected:
            return
        group, self._collected = self._collected, {}
        waiting, self._waiting = self._waiting, []
        self._writing = True
        data = encode_group(_by_owner(group))
        file, end = self._file, self._end
        known = self._owners.copy() if self._rewrites or file is None else None

        def job() -> tuple[File, int]:
            if known is None and file is not None:
                try:
                    file.pwrite(data, end)
                    sync(file)
                except BaseException:
                    file.close()
                    raise
                return file, end + len(data)
            if file is not None:
                file.close()
            whole = (encode_group(known.by_owner()) if known else b"") + data
            replace_file(self._disk, self._path, whole)
            return self._disk.open(self._path), len(whole)

        def written(result: tuple[File, int] | None, error: BaseException | None) -> None:
            self._writing = False
            self._rewrites = False
            self._file, self._end = result or (None, 0)
            if error is not None:
                path = self._path
                log.error("the owners of new ledgers cannot be written to %s: %s", path, in_words(error, beside=path))
            else:
                for ledger_id, owner in group.items():
                    self._owners.put(ledger_id, owner)
            if self._closed and self._file is not None:
                self._file.close()
            for done in waiting:
                done(error)
            self._advance()

        self._worker.submit(job, written)


def _by_owner(group: Mapping[LedgerId, Resource]) -> dict[Resource, list[int]]:
    found: dict[Resource, list[int]] = {}
    for ledger_id, owner in group.items():
        found.setdefault(owner, []).append(ledger_id)
    return found
