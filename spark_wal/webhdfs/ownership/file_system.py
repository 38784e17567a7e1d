"""The operations of the file system on the owner's session, without HTTP.

A reply's content is fixed before the first pause; then the reply waits until that content is durable (S3). Every
change, also of Spark's temporary files, is durable before it is answered.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from spark_wal.webhdfs.contents.blob_store import BlobMissingError, BlobStore
from spark_wal.webhdfs.contents.uploads import Upload
from spark_wal.webhdfs.errors import (
    EndOfFileError,
    NoSuchFileError,
    PlainIOError,
    WebHdfsError,
)
from spark_wal.webhdfs.files.inodes import DirectoryNode, FileNode, Node, Piece
from spark_wal.webhdfs.files.namespace import ContentSummary, TrackedFile
from spark_wal.webhdfs.files.paths import is_temporary
from spark_wal.webhdfs.files.records import (
    AppendToFile,
    DeletePath,
    MakeDirectories,
    NewFile,
    PutFile,
    Record,
    Rename,
    RenameMode,
    SetAttributes,
)
from spark_wal.webhdfs.ownership.namespace_owner import NamespaceOwner


@dataclass(frozen=True, slots=True)
class FileStatus:
    """The status of one file or directory at one moment."""

    name: str
    """The name in its directory. Empty for the requested path itself."""
    inode: int
    is_directory: bool
    length: int
    children: int
    permission: int
    owner: str
    group: str
    modified_ms: int
    accessed_ms: int
    replication: int
    block_size: int

    @classmethod
    def of(cls, node: Node, name: str = "") -> FileStatus:
        if isinstance(node, DirectoryNode):
            return cls(
                name,
                node.inode,
                True,
                0,
                len(node.children),
                node.permission,
                node.owner,
                node.group,
                node.modified_ms,
                node.accessed_ms,
                0,
                0,
            )
        return cls(
            name,
            node.inode,
            False,
            node.length,
            0,
            node.permission,
            node.owner,
            node.group,
            node.modified_ms,
            node.accessed_ms,
            node.replication,
            node.block_size,
        )


@dataclass(frozen=True, slots=True)
class FileContents:
    """The bytes of a file to send."""

    pieces: tuple[Piece, ...]
    length: int
    blobs: BlobStore

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the bytes. Raises PlainIOError if some are missing."""
        for piece in self.pieces:
            if isinstance(piece, bytes):
                yield piece
                continue
            try:
                async for data in self.blobs.read(piece.blob, piece.offset, piece.length):
                    yield data
            except BlobMissingError as error:
                raise PlainIOError(f"Could not obtain the content: {error}") from error


@dataclass(frozen=True, slots=True)
class CreateOptions:
    """The options of a CREATE."""

    overwrite: bool
    """Replace an existing file. False: refuse the CREATE if the file exists."""
    create_parent: bool
    permission: int
    owner: str
    replication: int
    block_size: int
    create: bool = True
    """Make a new file. False: refuse the CREATE if the file does not exist."""


# -- reading ---------------------------------------------------------------------------------------------


async def status(owner: NamespaceOwner, path: str) -> FileStatus:
    """The status of a path. Raises NoSuchFileError, or as ``Namespace.find``."""
    owner.check_sure()
    found = owner.namespace.find(path)
    answer = FileStatus.of(found.node) if found.node is not None else None
    await owner.settled(found.seen)
    if answer is None:
        raise NoSuchFileError(f"File does not exist: {path}")
    return answer


async def listing(owner: NamespaceOwner, path: str) -> list[FileStatus]:
    """A directory's children in order of their names. The listing of a file is the file, with an empty name."""
    owner.check_sure()
    found = owner.namespace.find(path)
    seen = found.seen
    if found.node is None:
        await owner.settled(seen)
        raise NoSuchFileError(f"File {path} does not exist.")
    if isinstance(found.node, FileNode):
        answer = [FileStatus.of(found.node)]
    else:
        answer = [FileStatus.of(found.node.children[name], name) for name in found.node.sorted_names()]
        seen = max(seen, owner.namespace.seen_listing(found.node))
    await owner.settled(seen)
    return answer


async def summary(owner: NamespaceOwner, path: str) -> ContentSummary:
    """The counts and sums below a path."""
    owner.check_sure()
    found = owner.namespace.find(path)
    answer = owner.namespace.summary(found.node) if found.node is not None else None
    await owner.settled(owner.namespace.sequence)
    if answer is None:
        raise NoSuchFileError(f"File does not exist: {path}")
    return answer


async def check_open(owner: NamespaceOwner, path: str, offset: int) -> None:
    """Check a path in the first step of OPEN. A directory passes, and fails in the second step."""
    owner.check_sure()
    found = owner.namespace.find(path)
    length = found.node.length if isinstance(found.node, FileNode) else None
    await owner.settled(found.seen)
    if found.node is None:
        raise NoSuchFileError(f"File {path} not found.")
    if length and offset >= length:
        raise PlainIOError(f"Offset={offset} out of the range [0, {length}); OPEN, path={path}")


async def open_file(owner: NamespaceOwner, path: str, offset: int, length: int | None) -> FileContents:
    """The bytes from ``offset``, at most ``length`` of them.

    Raises:
        NoSuchFileError: there is nothing, or a directory. EndOfFileError: ``offset`` is behind the end.
    """
    owner.check_sure()
    pieces, size = await _content(owner, path)
    if offset > size:
        raise EndOfFileError("Cannot seek after EOF")
    end = size if length is None else min(size, offset + length)
    return FileContents(tuple(cut(pieces, offset, end)), end - offset, owner.blobs)


async def _content(owner: NamespaceOwner, path: str) -> tuple[tuple[Piece, ...], int]:
    found = owner.namespace.find(path)
    node = found.node
    pieces, length = (node.pieces, node.length) if isinstance(node, FileNode) else ((), 0)
    _touch(owner, path, node)
    await owner.settled(found.seen)
    if node is None:
        raise NoSuchFileError(f"File does not exist: {path}")
    if isinstance(node, DirectoryNode):
        raise NoSuchFileError(f"Path is not a file: {path}")
    return pieces, length


def _touch(owner: NamespaceOwner, path: str, node: Node | None) -> None:
    """Note that a temporary file is in use: somebody reads it, or gives it attributes."""
    if isinstance(node, FileNode) and is_temporary(path):
        owner.left_behind.touch(node, owner.clock.wall_ms())


def cut(pieces: tuple[Piece, ...], start: int, end: int) -> list[Piece]:
    """The parts of ``pieces`` that make up the bytes from ``start`` to ``end``."""
    parts: list[Piece] = []
    at = 0
    for piece in pieces:
        size = len(piece) if isinstance(piece, bytes) else piece.length
        first, last = max(start - at, 0), min(end - at, size)
        if first < last:
            if isinstance(piece, bytes):
                parts.append(piece[first:last])
            else:
                parts.append(type(piece)(piece.blob, piece.offset + first, last - first))
        at += size
    return parts


# -- changing --------------------------------------------------------------------------------------------


async def make_directories(owner: NamespaceOwner, path: str, permission: int, user: str) -> bool:
    """Make a directory and those above it, like ``mkdir -p``."""
    await owner.change(MakeDirectories(path, permission, user, owner.clock.wall_ms()))
    return True


def check_create(owner: NamespaceOwner, path: str, options: CreateOptions) -> None:
    """Refuse a CREATE before its bytes arrive, if it would be refused anyway."""
    owner.check_sure()
    owner.namespace.check_put(path, overwrite=options.overwrite)
    _check_there(owner, path, options)


async def finish_create(owner: NamespaceOwner, path: str, upload: Upload, options: CreateOptions) -> None:
    """Make the file appear after its last byte. It is complete, and durable on return.

    Raises:
        WebHdfsError: the file does not appear, and nothing is left of it.
        NotOwnerError: the outcome is unknown.
    """

    def record() -> Record:
        _check_there(owner, path, options)
        return PutFile(path, _new_file(owner, upload, options), options.overwrite, options.create_parent)

    await _store(owner, upload, record)


def _check_there(owner: NamespaceOwner, path: str, options: CreateOptions) -> None:
    if not options.create and owner.namespace.find(path).node is None:
        raise NoSuchFileError(f"Can't overwrite non-existent {path}")


async def _store(owner: NamespaceOwner, upload: Upload, record: Callable[[], Record]) -> None:
    """Put the bytes into the tree with a record.

    If this fails before the tree has them, nothing of them is left, neither in memory nor as a blob. Bytes that the
    tree has are not removed, durable or not.
    """
    try:
        await upload.finish()
        await owner.room()
        await owner.change_now(
            record(), on_applied=upload.take
        )  # no pause between asking for the pieces and taking them
    except WebHdfsError:
        await owner.settled(owner.namespace.sequence)
        raise
    finally:
        await upload.abandon()


def _new_file(owner: NamespaceOwner, upload: Upload, options: CreateOptions) -> NewFile:
    return NewFile(
        upload.pieces(),
        options.permission,
        options.owner,
        options.replication,
        options.block_size,
        owner.clock.wall_ms(),
    )


async def check_append(owner: NamespaceOwner, path: str) -> None:
    """Check a path in the first step of APPEND. A directory passes, and fails in the second step."""
    owner.check_sure()
    found = owner.namespace.find(path)
    await owner.settled(found.seen)
    if found.node is None:
        raise NoSuchFileError(f"File {path} not found.")


def begin_append(owner: NamespaceOwner, path: str) -> TrackedFile:
    """Begin to receive bytes for a file. They go to this file, also if it is renamed before the last byte.

    Raises:
        NoSuchFileError, PathExistsError: there is no file.
    """
    owner.check_sure()
    return owner.namespace.follow(path)


async def finish_append(owner: NamespaceOwner, file: TrackedFile, upload: Upload) -> None:
    """Append the bytes of one APPEND to the file, all of them or none.

    Raises:
        NoSuchFileError: the file was removed or replaced since the bytes began to arrive.
    """

    def record() -> Record:
        if not owner.namespace.still_there(file):
            raise NoSuchFileError(f"File {file.path} was removed while it was appended to.")
        return AppendToFile(file.path, upload.pieces(), owner.clock.wall_ms())

    await _store(owner, upload, record)


async def rename(owner: NamespaceOwner, source: str, target: str, mode: RenameMode) -> bool:
    """Rename a path. The rename is atomic, and durable on return.

    Returns:
        False if HDFS's rename without options answers false; the other modes raise an error instead.
    """
    return (await owner.change(Rename(source, target, mode, owner.clock.wall_ms()))).value


async def delete(owner: NamespaceOwner, path: str, *, recursive: bool) -> bool:
    """Remove a path. Returns False if there was nothing."""
    return (await owner.change(DeletePath(path, recursive, owner.clock.wall_ms()))).value


async def set_attributes(owner: NamespaceOwner, record: SetAttributes) -> None:
    """Set attributes. Raises NoSuchFileError."""
    await owner.change(record, on_applied=lambda: _touch(owner, record.path, owner.namespace.find(record.path).node))
