"""Copies a checkpoint: first a note, then the files, then a check of the source, and ``metadata`` last."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Final

from bookkeeper.amounts import counted
from spark_wal.checkpoint_copy import contents
from spark_wal.checkpoint_copy.contents import METADATA, FileStamp
from spark_wal.checkpoint_copy.stores import CheckpointStore, CheckpointStoreError

WORKERS: Final = 8
"""Files that are copied at a time."""

SCANNED_MAX: Final = 1 << 20
"""The largest file, in bytes, that is searched for addresses."""


class CopyRefusedError(Exception):
    """The copy was not begun, or not finished. The text says why, and what to do."""


@dataclass(frozen=True, slots=True)
class CopiedCheckpoint:
    """The result of a copy."""

    files: int
    size: int
    """Bytes."""
    already: int
    """Files that an earlier, unfinished copy had written."""
    digest: str
    """SHA-256 over names and contents: equal checkpoints have equal digests, wherever they are."""


Progress = Callable[[int], None]
"""Called with the number of bytes of each file that was copied and verified."""


class CheckpointCopier:
    """Copies one checkpoint."""

    def __init__(
        self, source: CheckpointStore, target: CheckpointStore, *, resume: bool = False, keep_addresses: bool = False
    ) -> None:
        self._source = source
        self._target = target
        self._resume = resume
        self._keep_addresses = keep_addresses
        self._already = 0
        self._is_complete = False
        self._digests: dict[str, str] = {}
        self._listing: Mapping[str, FileStamp] = {}
        self.files: list[str] = []
        """The files to copy, after :meth:`prepare`."""
        self.size = 0
        """Their size in bytes."""

    def prepare(self) -> None:
        """Check both sides, and change nothing.

        Raises:
            CopyRefusedError: for instance, the source is not a checkpoint, or the target is not empty.
            CheckpointStoreError: one of them cannot be read.
        """
        if _nested(self._source.uri, self._target.uri):
            raise CopyRefusedError(
                f"{self._source.uri} and {self._target.uri} overlap: choose a target outside of the source"
            )
        self._listing = self._source.listing()
        self.files = [path for path in sorted(self._listing) if contents.belongs(path, self._listing)]
        self.size = sum(self._listing[path].size for path in self.files)
        if METADATA in self._listing and contents.source_of(_start(self._source, METADATA)) is not None:
            raise CopyRefusedError(f"{self._source.uri} is an unfinished copy itself: copy from its source")
        why = contents.why_not_one(self.files)
        if why is not None:
            raise CopyRefusedError(f"{self._source.uri} is not a checkpoint of a query: {why}")
        self._refuse_addresses()
        self._is_complete = self._resume and self._has_metadata()
        self._require_target()

    def run(self, progress: Progress = lambda size: None) -> CopiedCheckpoint:
        """Copy and verify; call :meth:`prepare` before.

        Raises:
            CopyRefusedError: the source changed, or the target does not hold what was written. The target is
                unfinished, says so to Spark, and a later copy can finish it.
            CheckpointStoreError: a store failed. The target is unfinished, too.
        """
        present = self._target.listing()
        if self._is_complete:
            self._compare_all(present, progress)
        else:
            self._put(METADATA, contents.note(self._source.uri))
            self._target.sync()
            *steps, last = contents.stages(self.files)
            for step in steps:
                self._for_all(step, lambda path: self._copy(path, present), progress)
                self._target.sync()
            self._require_unchanged()
            self._require_nothing_else()
            self._for_all(last, lambda path: self._copy(path, present), progress)
            self._target.sync()
        total = hashlib.sha256("".join(f"{p}\0{self._digests[p]}\n" for p in self.files).encode()).hexdigest()
        return CopiedCheckpoint(len(self.files), self.size, self._already, total)

    # -- the checks ------------------------------------------------------------------------------------

    def _require_target(self) -> None:
        found = self._target.listing()
        if not found:
            return
        begun = contents.source_of(_start(self._target, METADATA)) if METADATA in found else None
        if begun is None and not self._is_complete:
            raise CopyRefusedError(
                f"{self._target.uri} is not empty ({counted(len(found), 'file')}, the first is {min(found)}) and holds "
                "no unfinished copy: copy into a new directory"
            )
        if begun is not None and not self._resume:
            raise CopyRefusedError(
                f"{self._target.uri} is an unfinished copy of {begun}: finish it with --resume, or copy to "
                "another directory"
            )
        if begun is not None and begun != self._source.uri:
            raise CopyRefusedError(
                f"{self._target.uri} is an unfinished copy of {begun}, not of {self._source.uri}: copy to "
                "another directory"
            )

    def _has_metadata(self) -> bool:
        """Whether the target has the source's ``metadata``. Then an earlier copy is complete."""
        if METADATA not in self._target.listing():
            return False
        return b"".join(self._target.read(METADATA)) == b"".join(self._source.read(METADATA))

    def _refuse_addresses(self) -> None:
        """Refuse full addresses, which transformWithState writes: in the copy they would lead to the old place."""
        if self._keep_addresses:
            return
        wanted = self._source.uri.partition("://")[2].encode()
        wanted = wanted[wanted.find(b"/") :] if not self._source.uri.startswith("file:") else wanted
        for path in self.files:
            if not contents.names_places(path) or self._listing[path].size > SCANNED_MAX:
                continue
            if wanted + b"/" in b"".join(self._source.read(path)):
                raise CopyRefusedError(
                    f"{path} names files by their full address in {self._source.uri}, and the query would "
                    "look for them there. If the old place stays, --keep-addresses copies the file as it is"
                )

    def _require_nothing_else(self) -> None:
        wanted = set(self.files)
        extra = [path for path in self._target.listing() if path not in wanted and contents.belongs(path, wanted)]
        if extra:
            raise CopyRefusedError(
                f"{self._target.uri} holds {min(extra)}, which is not in {self._source.uri}: copy into a new directory"
            )

    def _require_unchanged(self) -> None:
        changed = contents.difference(self._listing, self._source.listing())
        if changed is not None:
            raise CopyRefusedError(
                f"{self._source.uri} changed during the copy ({changed}), so the query may be running. Stop "
                "it, then copy again into a new directory"
            )

    # -- the work --------------------------------------------------------------------------------------

    def _for_all(self, paths: Sequence[str], do: Callable[[str], None], progress: Progress) -> None:
        with ThreadPoolExecutor(WORKERS, thread_name_prefix="checkpoint copy") as pool:
            running = {pool.submit(do, path): path for path in paths}
            try:
                for done in as_completed(running):
                    done.result()
                    progress(self._listing[running[done]].size)
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def _compare_all(self, present: Mapping[str, FileStamp], progress: Progress) -> None:
        """Compare with a finished copy. This writes nothing, because a query may already use the target."""
        self._require_nothing_else()

        def compare(path: str) -> None:
            if not self._has(path, present):
                raise CopyRefusedError(
                    f"{self._target.uri} is a finished copy and has changed since ({path}): nothing was copied"
                )

        self._for_all(self.files, compare, progress)
        self._require_unchanged()

    def _has(self, path: str, present: Mapping[str, FileStamp]) -> bool:
        """Whether the target has this file, byte for byte."""
        if path not in present or present[path].size != self._listing[path].size:
            return False
        digest = _digest(self._source.read(path))
        if _digest(self._target.read(path)) != digest:
            return False
        self._digests[path] = digest
        self._already += 1
        return True

    def _copy(self, path: str, present: Mapping[str, FileStamp]) -> None:
        """Copy one file, unless the target has it, and read it back."""
        if self._has(path, present):
            return
        size = self._listing[path].size
        seen = _MeasuredStream(lambda: self._source.read(path))
        self._target.write(path, seen.parts)
        if seen.size != size:
            raise CopyRefusedError(
                f"{path} was listed with {size} bytes and has {seen.size}, so the query may be running. Stop "
                "it, then copy again"
            )
        self._verify(path, seen.digest)
        self._digests[path] = seen.digest

    def _put(self, path: str, data: bytes) -> None:
        self._target.write(path, lambda: [data])
        self._verify(path, hashlib.sha256(data).hexdigest())

    def _verify(self, path: str, digest: str) -> None:
        if _digest(self._target.read(path)) != digest:
            raise CopyRefusedError(
                f"{self._target.uri}/{path} does not read back as it was written: copy again, to another store "
                "if it happens again"
            )


class _MeasuredStream:
    """A stream of bytes, counted and hashed. Each call starts again at the beginning."""

    def __init__(self, source: Callable[[], Iterator[bytes]]) -> None:
        self._source = source
        self.size = 0
        self._hash = hashlib.sha256()

    def parts(self) -> Iterator[bytes]:
        self.size, self._hash = 0, hashlib.sha256()
        for data in self._source():
            self.size += len(data)
            self._hash.update(data)
            yield data

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()


def _digest(parts: Iterable[bytes]) -> str:
    found = hashlib.sha256()
    for data in parts:
        found.update(data)
    return found.hexdigest()


def _start(place: CheckpointStore, path: str) -> bytes:
    """The first bytes of a file."""
    data = b""
    for part in place.read(path):
        data += part
        if len(data) >= contents.NOTE_MAX:
            break
    return data[: contents.NOTE_MAX]


def _nested(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


__all__ = ["CheckpointCopier", "CheckpointStoreError", "CopiedCheckpoint", "CopyRefusedError"]
