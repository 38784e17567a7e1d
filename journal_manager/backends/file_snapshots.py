"""Snapshots as files beside the segments: ``snapshot_<at>``; what a reader has offered: ``offered_<at>``.

    magic "JSNAP" u8 format | u64 at | u64 size | 32 bytes SHA-256 of the content | u64 epoch | content

The epoch is there in format 2, which is written once edits were discarded. It stands in the name of an offer, too, so
that offers of edits with the same ids do not replace each other. A snapshot of edits that were discarded is none, by
its epoch and the journal's node, also while its file is still there.

A snapshot is written under another name, synced and renamed, so it exists complete or not at all. The owner renames
while it holds the directory's lock and its epoch is the newest.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from typing import Final

from journal_manager.backends.blocking_steps import BlockingSteps
from journal_manager.backends.file_directory import JournalDirectory
from journal_manager.backends.files import OpenFile
from journal_manager.edits import UNKNOWN_EPOCH, FencingToken, SegmentInfo, TxId
from journal_manager.errors import JournalCorruptionError, UnsupportedLayoutError
from journal_manager.journals.chain import Chain
from journal_manager.snapshots.snapshots import (
    PIECE_BYTES,
    Chunks,
    SnapshotInfo,
    SnapshotStore,
    adoptable,
    ensure_durable,
    no_snapshot,
    pieces,
)

FORMAT: Final = 2
PLAIN_FORMAT: Final = 1
_HEADER: Final = struct.Struct(">5sBQQ32s")
_EPOCH: Final = struct.Struct(">Q")
PLAIN_BYTES: Final = _HEADER.size
HEADER_BYTES: Final = PLAIN_BYTES + _EPOCH.size
"""The length of the longest header."""
NEWEST_EPOCH: Final = 2**64 - 1
_NAME: Final = re.compile(r"(snapshot|offered)_(\d{19})(?:\.(\d{19}))?")


@dataclass(frozen=True, slots=True)
class SnapshotHeader:
    at: TxId
    size: int
    sha256: bytes
    epoch: int = UNKNOWN_EPOCH

    @property
    def length(self) -> int:
        """Where the content begins."""
        return header_length(self.epoch)


def header_length(epoch: int) -> int:
    """How long the header of a snapshot of this epoch is."""
    return PLAIN_BYTES if epoch == UNKNOWN_EPOCH else HEADER_BYTES


def encode_header(header: SnapshotHeader) -> bytes:
    if header.epoch == UNKNOWN_EPOCH:
        return _HEADER.pack(b"JSNAP", PLAIN_FORMAT, header.at, header.size, header.sha256)
    return _HEADER.pack(b"JSNAP", FORMAT, header.at, header.size, header.sha256) + _EPOCH.pack(header.epoch)


def decode_header(data: bytes, name: str) -> SnapshotHeader:
    """Decode the header of a snapshot's file.

    Raises:
        JournalCorruptionError: the file is damaged. UnsupportedLayoutError: a newer program wrote it.
    """
    if len(data) >= PLAIN_BYTES:
        magic, version, at, size, digest = _HEADER.unpack_from(data)
        if magic == b"JSNAP" and version > FORMAT:
            raise UnsupportedLayoutError(f"{name} has format {version}: a newer program wrote it")
        if magic == b"JSNAP" and version == PLAIN_FORMAT:
            return SnapshotHeader(at, size, digest)
        if magic == b"JSNAP" and version == FORMAT and len(data) >= HEADER_BYTES:
            return SnapshotHeader(at, size, digest, _EPOCH.unpack_from(data, PLAIN_BYTES)[0])
    raise damaged(name)


def damaged(name: str) -> JournalCorruptionError:
    return JournalCorruptionError(f"the snapshot in {name} is damaged", location=name)


def snapshot_name(at: TxId) -> str:
    return f"snapshot_{at:019d}"


def offered_name(at: TxId, epoch: int) -> str:
    return f"offered_{at:019d}" if epoch == UNKNOWN_EPOCH else f"offered_{at:019d}.{epoch:019d}"


class FileSnapshots(SnapshotStore):
    """The snapshots of one directory."""

    def __init__(self, place: JournalDirectory, steps: BlockingSteps) -> None:
        self._place, self._files, self._steps = place, place.files, steps

    async def list(self) -> tuple[SnapshotInfo, ...]:
        return await self._steps.submit(lambda: valid_snapshots(self._place))

    async def read(self, at: TxId) -> AsyncGenerator[bytes, None]:
        path = self._place.path(snapshot_name(at))
        file, header = await self._steps.submit(lambda: self._open(at, path))
        try:
            digest, offset = hashlib.sha256(), header.length
            while piece := await self._steps.submit(lambda place=offset: file.pread(PIECE_BYTES, place)):  # type: ignore[misc]
                digest.update(piece)
                offset += len(piece)
                yield piece
            if offset != header.length + header.size or digest.digest() != header.sha256:
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
            if header.at != at or file.size() != header.length + header.size:
                raise damaged(path)
            if self._place.state().discarded.covers(at, header.epoch):
                raise no_snapshot(at)
        except BaseException:
            file.close()
            raise
        return file, header

    async def offer(self, at: TxId, chunks: Chunks, *, epoch: int = UNKNOWN_EPOCH) -> SnapshotInfo:
        epoch = written_epoch(await self._steps.submit(self._place.state), epoch)
        name = offered_name(at, epoch)
        temporary, size = await written(self._place, self._steps, name, at, chunks, epoch)
        await self._steps.submit(lambda: self._place.rename(temporary, name))
        return SnapshotInfo(at, size, self._place.path(name), epoch)

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
        state, name = await self._steps.submit(self._place.state), snapshot_name(at)
        state.ensure_rollback_possible(at)
        epoch = written_epoch(state, self._token.epoch)
        temporary, size = await written(self._place, self._steps, name, at, chunks, epoch)

        def keep() -> None:
            try:
                self._place.rename_as_owner(self._token, temporary, name)
            except BaseException:
                self._place.remove_if_there(temporary)
                raise

        await self._steps.submit(keep)
        return SnapshotInfo(at, size, self._place.path(name), epoch)

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
        state = self._place.state()
        offered = listed(self._place, "offered")
        good, useless = adoptable(offered, valid_snapshots(self._place), durable, state.discarded, state.needs_snapshot)
        for info in good:
            self._place.rename_as_owner(self._token, offered_name(info.at, info.epoch), snapshot_name(info.at))
        for info in useless:
            self._place.remove_as_owner(self._token, offered_name(info.at, info.epoch))
        return tuple(replace(info, location=self._place.path(snapshot_name(info.at))) for info in good)

    async def discard_from(self, first: TxId) -> tuple[SegmentInfo, ...]:
        """Remove edits and the snapshots that contain them. Raises as ``Discard.discard_from``."""

        def discard() -> tuple[SegmentInfo, ...]:
            gone = self._place.discard_from(self._token, first)
            self._remove_discarded()
            return gone

        return await self._steps.submit(discard)

    async def roll_back(self) -> tuple[SegmentInfo, ...]:
        """Remove edits and snapshots since the upgrade began. Raises as ``Upgrade.roll_back``.

        First every offer: one at an id from before the upgrade may be the new version's, and be adopted afterwards.
        """

        def roll_back() -> tuple[SegmentInfo, ...]:
            for info in listed(self._place, "offered"):
                self._place.remove_as_owner(self._token, offered_name(info.at, info.epoch))
            gone = self._place.roll_back(self._token)
            self._remove_discarded()
            return gone

        return await self._steps.submit(roll_back)

    def _remove_discarded(self) -> None:
        """Remove the snapshots and offers of edits that were discarded; nobody restores or adopts them any more."""
        discarded = self._place.state().discarded
        names = [(info, snapshot_name(info.at)) for info in listed(self._place, "snapshot")]
        names += [(info, offered_name(info.at, info.epoch)) for info in listed(self._place, "offered")]
        for info, name in names:
            if discarded.covers(info.at, info.epoch):
                self._place.remove_as_owner(self._token, name)

    def close(self) -> None:
        self._steps.close()


def valid_snapshots(place: JournalDirectory) -> tuple[SnapshotInfo, ...]:
    """The snapshots, oldest first. The record is read last, so that nothing that is discarded meanwhile is missed."""
    found = listed(place, "snapshot")
    discarded = place.state().discarded
    return tuple(info for info in found if not discarded.covers(info.at, info.epoch))


def listed(place: JournalDirectory, kind: str) -> tuple[SnapshotInfo, ...]:
    """The files of one kind, ``snapshot`` or ``offered``, oldest first."""
    found: list[SnapshotInfo] = []
    for name in place.files.list(place.directory):
        if (match := _NAME.fullmatch(name)) and match[1] == kind:
            try:
                file = place.files.open(place.path(name), write=False)
            except FileNotFoundError:
                continue
            try:
                epoch = int(match[3] or 0) if kind == "offered" else _epoch_of(file, name)
                size = max(0, file.size() - header_length(epoch))
            finally:
                file.close()
            found.append(SnapshotInfo(TxId(int(match[2])), size, place.path(name), epoch))
    return tuple(found)


def _epoch_of(file: OpenFile, name: str) -> int:
    """The epoch of a snapshot. A damaged header hides none: reading the snapshot says what is wrong with it."""
    try:
        return decode_header(file.pread(HEADER_BYTES, 0), name).epoch
    except (JournalCorruptionError, UnsupportedLayoutError):
        return NEWEST_EPOCH


def written_epoch(state: Chain, epoch: int) -> int:
    """The epoch that is written into a snapshot: none as long as nothing was ever discarded from the journal."""
    return epoch if state.discarded else UNKNOWN_EPOCH


async def written(
    place: JournalDirectory, steps: BlockingSteps, name: str, at: TxId, chunks: Chunks, epoch: int
) -> tuple[str, int]:
    """Write a snapshot to a temporary file for ``name`` and sync it; its header comes last. Returns the temporary
    file's name and the content's size. What fails, or is cancelled, leaves no file."""
    temporary, file = await steps.submit(lambda: place.new_temporary(name))
    try:
        digest, offset = hashlib.sha256(), header_length(epoch)
        async for piece in pieces(chunks):
            digest.update(piece)
            await steps.submit(lambda data=piece, place=offset: file.pwrite(data, place))  # type: ignore[misc]
            offset += len(piece)
        header = SnapshotHeader(at, offset - header_length(epoch), digest.digest(), epoch)

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
