"""Snapshots as files beside the segments: ``snapshot_<at>``.

    magic "JSNAP" u8 format | u64 at | u64 size | 32 bytes SHA-256 of the content | content

A snapshot is written under another name, synced and renamed, so it exists complete or not at all.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterable
from typing import Final

from journal_manager.backends.blocking_steps import BlockingSteps
from journal_manager.backends.files import Files
from journal_manager.errors import JournalCorruptionError, SnapshotNotFoundError
from journal_manager.snapshots import SnapshotInfo, SnapshotStore
from journal_manager.txid import TxId

FORMAT: Final = 1
_HEADER: Final = struct.Struct(">5sBQQ32s")
_NAME: Final = re.compile(r"snapshot_(\d{19})")


def encode(at: TxId, content: bytes) -> bytes:
    """Encode a snapshot's file."""
    return _HEADER.pack(b"JSNAP", FORMAT, at, len(content), hashlib.sha256(content).digest()) + content


def decode(data: bytes, at: TxId, name: str) -> bytes:
    """Decode the content of a snapshot's file.

    Raises:
        JournalCorruptionError: the file is damaged.
    """
    if len(data) >= _HEADER.size:
        magic, version, stored, size, digest = _HEADER.unpack_from(data)
        content = data[_HEADER.size :]
        same = (magic, version, stored, size) == (b"JSNAP", FORMAT, at, len(content))
        if same and hashlib.sha256(content).digest() == digest:
            return content
    raise JournalCorruptionError(f"the snapshot in {name} is damaged", location=name)


class FileSnapshots(SnapshotStore):
    """The snapshots of one directory."""

    def __init__(self, files: Files, directory: str, steps: BlockingSteps) -> None:
        self._files, self._directory, self._steps = files, directory, steps

    async def save(self, at: TxId, chunks: Iterable[bytes]) -> SnapshotInfo:
        content = b"".join(chunks)
        return await self._steps.submit(lambda: self._save(at, encode(at, content)))

    def _save(self, at: TxId, data: bytes) -> SnapshotInfo:
        path = self._path(at)
        temporary = f"{path}.tmp"
        if self._files.exists(temporary):
            self._files.unlink(temporary)
        file = self._files.open(temporary, create=True)
        try:
            file.pwrite(data, 0)
            file.sync()
        finally:
            file.close()
        self._files.rename(temporary, path)
        self._files.sync_directory(self._directory)
        return SnapshotInfo(at, len(data) - _HEADER.size, path)

    async def list(self) -> tuple[SnapshotInfo, ...]:
        return await self._steps.submit(self._list)

    def _list(self) -> tuple[SnapshotInfo, ...]:
        found: list[SnapshotInfo] = []
        for name in self._files.list(self._directory):
            if match := _NAME.fullmatch(name):
                file = self._files.open(f"{self._directory}/{name}", write=False)
                found.append(SnapshotInfo(TxId(int(match[1])), file.size() - _HEADER.size, f"{self._directory}/{name}"))
                file.close()
        return tuple(found)

    async def load(self, at: TxId | None = None) -> tuple[SnapshotInfo, bytes] | None:
        return await self._steps.submit(lambda: self._load(at))

    def _load(self, at: TxId | None) -> tuple[SnapshotInfo, bytes] | None:
        wanted = [info for info in self._list() if at is None or info.at == at]
        if at is not None and not wanted:
            raise SnapshotNotFoundError(f"there is no snapshot at edit {at} in {self._directory}")
        damage: JournalCorruptionError | None = None
        for info in reversed(wanted):
            try:
                return info, decode(self._files.read_file(info.location), info.at, info.location)
            except JournalCorruptionError as error:
                damage = damage or error
        if damage is not None:
            raise damage
        return None

    async def delete(self, at: TxId) -> None:
        await self._steps.submit(lambda: self._delete(at))

    def _delete(self, at: TxId) -> None:
        if self._files.exists(self._path(at)):
            self._files.unlink(self._path(at))
            self._files.sync_directory(self._directory)

    async def close(self) -> None:
        self._steps.close()

    def _path(self, at: TxId) -> str:
        return f"{self._directory}/snapshot_{at:019d}"
