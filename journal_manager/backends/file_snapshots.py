"""Snapshots as files beside the segments: ``snapshot_<at>``; what a reader has offered: ``offered_<at>``.

    magic "JSNAP" u8 format | u64 at | u64 size | 32 bytes SHA-256 of the content | content

A snapshot is written under another name, synced and renamed, so it exists complete or not at all. The owner renames
while it holds the directory's lock and its epoch is the newest.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Final

from journal_manager.backends.blocking_steps import BlockingSteps
from journal_manager.backends.file_directory import JournalDirectory
from journal_manager.backends.files import OpenFile
from journal_manager.edits import FencingToken, SegmentInfo, TxId
from journal_manager.errors import JournalCorruptionError, UnsupportedLayoutError
from journal_manager.snapshots import (
    PIECE_BYTES,
    Chunks,
    SnapshotInfo,
    SnapshotStore,
    adoptable,
    ensure_durable,
    no_snapshot,
    pieces,
)

FORMAT: Final = 1
_HEADER: Final = struct.Struct(">5sBQQ32s")
HEADER_BYTES: Final = _HEADER.size
_NAME: Final = re.compile(r"(snapshot|offered)_(\d{19})")


@dataclass(frozen=True, slots=True)
class SnapshotHeader:
    at: TxId
    size: int
    sha256: bytes


def encode_header(header: SnapshotHeader) -> bytes:
    return _HEADER.pack(b"JSNAP", FORMAT, header.at, header.size, header.sha256)


def decode_header(data: bytes, name: str) -> SnapshotHeader:
    """Decode the header of a snapshot's file.

    Raises:
        JournalCorruptionError: the file is damaged. UnsupportedLayoutError: a newer program wrote it.
    """
    if len(data) >= HEADER_BYTES:
        magic, version, at, size, digest = _HEADER.unpack_from(data)
        if magic == b"JSNAP" and version > FORMAT:
            raise UnsupportedLayoutError(f"{name} has format {version}: a newer program wrote it")
        if magic == b"JSNAP" and version == FORMAT:
            return SnapshotHeader(at, size, digest)
    raise damaged(name)


def damaged(name: str) -> JournalCorruptionError:
    return JournalCorruptionError(f"the snapshot in {name} is damaged", location=name)


def snapshot_name(at: TxId) -> str:
    return f"snapshot_{at:019d}"


def offered_name(at: TxId) -> str:
    return f"offered_{at:019d}"


class FileSnapshots(SnapshotStore):
    """The snapshots of one directory."""

    def __init__(self, place: JournalDirectory, steps: BlockingSteps) -> None:
        self._place, self._files, self._steps = place, place.files, steps

    async def list(self) -> tuple[SnapshotInfo, ...]:
        return await self._steps.submit(lambda: listed(self._place, "snapshot"))

    async def read(self, at: TxId) -> AsyncGenerator[bytes, None]:
        path = self._place.path(snapshot_name(at))
        file, header = await self._steps.submit(lambda: self._open(at, path))
        try:
            digest, offset = hashlib.sha256(), HEADER_BYTES
            while piece := await self._steps.submit(lambda place=offset: file.pread(PIECE_BYTES, place)):  # type: ignore[misc]
                digest.update(piece)
                offset += len(piece)
                yield piece
            if offset != HEADER_BYTES + header.size or digest.digest() != header.sha256:
                raise damaged(path)
        finally:
            self._steps.finish(file.close)

    def _open(self, at: TxId, path: str) -> tuple[OpenFile, SnapshotHeader]:
        try:
            file = self._files.open(path, write=False)
        except FileNotFoundError as error:
            raise no_snapshot(at) from error
        try:
            header = decode_header(file.pread(HEADER_BYTES, 0), path)
            if header.at != at or file.size() != HEADER_BYTES + header.size:
                raise damaged(path)
        except BaseException:
            file.close()
            raise
        return file, header

    async def offer(self, at: TxId, chunks: Chunks) -> SnapshotInfo:
        name = offered_name(at)
        temporary, size = await written(self._place, self._steps, name, at, chunks)
        await self._steps.submit(lambda: self._place.rename(temporary, name))
        return SnapshotInfo(at, size, self._place.path(name))

    async def close(self) -> None:
        self._steps.close()


class FileSnapshotKeeper:
    """What the owner does with the snapshots of its directory."""

    def __init__(self, place: JournalDirectory, steps: BlockingSteps, token: FencingToken) -> None:
        self._place, self._steps, self._token = place, steps, token

    async def save(self, at: TxId, chunks: Chunks, durable: TxId) -> SnapshotInfo:
        """Keep the state after edit ``at``. Raises as ``JournalWriter.save_snapshot``."""
        await self._steps.submit(lambda: self._place.ensure_current(self._token))
        ensure_durable(at, durable)
        name = snapshot_name(at)
        temporary, size = await written(self._place, self._steps, name, at, chunks)

        def keep() -> None:
            try:
                self._place.rename_as_owner(self._token, temporary, name)
            except BaseException:
                self._place.remove_if_there(temporary)
                raise

        await self._steps.submit(keep)
        return SnapshotInfo(at, size, self._place.path(name))

    async def delete(self, at: TxId) -> None:
        def delete() -> None:
            if self._place.state().needs_snapshot(at):
                self._place.ensure_current(self._token)
            else:
                self._place.remove_as_owner(self._token, snapshot_name(at))

        await self._steps.submit(delete)

    async def adopt(self, durable: TxId) -> tuple[SnapshotInfo, ...]:
        """Keep what readers have offered. Raises as ``JournalWriter.adopt_snapshots``."""
        return await self._steps.submit(lambda: self._adopt(durable))

    def _adopt(self, durable: TxId) -> tuple[SnapshotInfo, ...]:
        self._place.ensure_current(self._token)
        good, useless = adoptable(listed(self._place, "offered"), listed(self._place, "snapshot"), durable)
        for info in good:
            self._place.rename_as_owner(self._token, offered_name(info.at), snapshot_name(info.at))
        for info in useless:
            self._place.remove_as_owner(self._token, offered_name(info.at))
        return tuple(SnapshotInfo(info.at, info.size, self._place.path(snapshot_name(info.at))) for info in good)

    async def discard_from(self, first: TxId) -> tuple[SegmentInfo, ...]:
        """Remove edits and the snapshots that contain them. Raises as ``Discard.discard_from``."""

        def discard() -> tuple[SegmentInfo, ...]:
            return self._place.discard_from(self._token, first, tuple(self._names_from(first)))

        return await self._steps.submit(discard)

    async def roll_back(self) -> tuple[SegmentInfo, ...]:
        """Remove edits and snapshots since the upgrade began. Raises as ``Upgrade.roll_back``."""
        return await self._steps.submit(lambda: self._place.roll_back(self._token, self._names_from))

    def _names_from(self, first: TxId) -> list[str]:
        """The files of snapshots and offers at ``first`` and above."""
        names = [snapshot_name(info.at) for info in listed(self._place, "snapshot") if info.at >= first]
        return names + [offered_name(info.at) for info in listed(self._place, "offered") if info.at >= first]

    def close(self) -> None:
        self._steps.close()


def listed(place: JournalDirectory, kind: str) -> tuple[SnapshotInfo, ...]:
    """The files of one kind, ``snapshot`` or ``offered``, oldest first."""
    found: list[SnapshotInfo] = []
    for name in place.files.list(place.directory):
        if (match := _NAME.fullmatch(name)) and match[1] == kind:
            try:
                file = place.files.open(place.path(name), write=False)
            except FileNotFoundError:
                continue
            found.append(SnapshotInfo(TxId(int(match[2])), max(0, file.size() - HEADER_BYTES), place.path(name)))
            file.close()
    return tuple(found)


async def written(
    place: JournalDirectory, steps: BlockingSteps, name: str, at: TxId, chunks: Chunks
) -> tuple[str, int]:
    """Write a snapshot to a temporary file for ``name`` and sync it; its header comes last. Returns the temporary
    file's name and the content's size. What fails, or is cancelled, leaves no file."""
    temporary, file = await steps.submit(lambda: place.new_temporary(name))
    try:
        digest, offset = hashlib.sha256(), HEADER_BYTES
        async for piece in pieces(chunks):
            digest.update(piece)
            await steps.submit(lambda data=piece, place=offset: file.pwrite(data, place))  # type: ignore[misc]
            offset += len(piece)
        header = SnapshotHeader(at, offset - HEADER_BYTES, digest.digest())

        def seal() -> None:
            file.pwrite(encode_header(header), 0)
            file.sync()

        await steps.submit(seal)
    except BaseException:
        steps.finish(file.close)
        steps.finish(lambda: place.remove_if_there(temporary))
        raise
    steps.finish(file.close)
    return temporary, header.size
