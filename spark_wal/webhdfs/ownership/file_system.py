"""The operations of the file system on the owner's session, without HTTP.

A reply's content is fixed before the first pause; then the reply waits until that content is durable (S3). Every
change, also of Spark's temporary files, is durable before it is answered.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Final

from spark_wal.webhdfs.contents.blob_store import READ_SIZE, BlobMissingError, BlobStore
from spark_wal.webhdfs.contents.uploads import Upload
from spark_wal.webhdfs.errors import (
    EndOfFileError,
    NoSuchFileError,
    PlainIOError,
    WebHdfsError,
)
from spark_wal.webhdfs.files.incoming_files import IncomingFile
from spark_wal.webhdfs.files.inodes import GROUP, DirectoryNode, FileNode, Node, Piece, cut
from spark_wal.webhdfs.files.numbered import Limits, files_below, listing_digest
from spark_wal.webhdfs.files.paths import is_temporary
from spark_wal.webhdfs.files.records import (
    AppendToFile,
    DeletePath,
    MakeDirectories,
    NewFile,
    PutFile,
    Record,
    RemoveNumbered,
    Rename,
    RenameMode,
    SetAttributes,
)
from spark_wal.webhdfs.files.tracked_files import TrackedFile
from spark_wal.webhdfs.files.tree_answers import ContentSummary
from spark_wal.webhdfs.ownership.growing_file import GrowingFile
from spark_wal.webhdfs.ownership.namespace_owner import NamespaceOwner

AHEAD_MAX_MS: Final = 60_000
"""A file that was written by another gateway, whose clock is a little ahead, may have a time that is so far ahead."""


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
        file = node if isinstance(node, FileNode) else None
        return cls(
            name=name,
            inode=node.inode,
            is_directory=file is None,
            length=0 if file is None else file.length,
            children=len(node.children) if isinstance(node, DirectoryNode) else 0,
            permission=node.permission,
            owner=node.owner,
            group=node.group,
            modified_ms=node.modified_ms,
            accessed_ms=node.accessed_ms,
            replication=0 if file is None else file.replication,
            block_size=0 if file is None else file.block_size,
        )

    @classmethod
    def of_incoming(cls, file: IncomingFile) -> FileStatus:
        """The status of a file whose bytes are on their way, as HDFS answers it: its length is 0."""
        return cls(
            name="",
            inode=0,
            is_directory=False,
            length=0,
            children=0,
            permission=file.permission,
            owner=file.owner,
            group=file.group or GROUP,
            modified_ms=file.modified_ms,
            accessed_ms=file.modified_ms if file.accessed_ms is None else file.accessed_ms,
            replication=file.replication,
            block_size=file.block_size,
        )


@dataclass(frozen=True, slots=True)
class FileContents:
    """The bytes of a file to send."""

    pieces: tuple[Piece, ...]
    length: int
    blobs: BlobStore

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the bytes. Raises PlainIOError if some are missing."""
        small: list[bytes] = []  # a file that grew has many
        size = 0
        for piece in self.pieces:
            if isinstance(piece, bytes):
                small.append(piece)
                size += len(piece)
                if size < READ_SIZE:
                    continue
            if small:
                yield b"".join(small)
                small, size = [], 0
            if isinstance(piece, bytes):
                continue
            try:
                async for data in self.blobs.read(piece.blob, piece.offset, piece.length):
                    yield data
            except BlobMissingError as error:
                raise PlainIOError(f"Could not obtain the content: {error}") from error
        if small:
            yield b"".join(small)


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
    """The status of a path. A file whose upload is open has one, as in HDFS. Raises NoSuchFileError, or as
    ``Namespace.find``."""
    owner.require_lease()
    found = owner.namespace.find(path)
    answer = FileStatus.of(found.node) if found.node is not None else None
    if answer is None and (opened := owner.incoming.at(path)) is not None:
        answer = FileStatus.of_incoming(opened)
    await owner.settled(found.seen)
    if answer is None:
        raise NoSuchFileError(f"File does not exist: {path}")
    return answer


async def listing(owner: NamespaceOwner, path: str) -> list[FileStatus]:
    """A directory's children in order of their names. The listing of a file is the file, with an empty name."""
    owner.require_lease()
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
    owner.require_lease()
    found = owner.namespace.find(path)
    answer = owner.namespace.summary(found.node) if found.node is not None else None
    await owner.settled(owner.namespace.sequence)
    if answer is None:
        raise NoSuchFileError(f"File does not exist: {path}")
    return answer


async def check_open(owner: NamespaceOwner, path: str, offset: int) -> None:
    """Check a path in the first step of OPEN. A directory passes, and fails in the second step."""
    owner.require_lease()
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
    owner.require_lease()
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


# -- changing --------------------------------------------------------------------------------------------


async def make_directories(owner: NamespaceOwner, path: str, permission: int, user: str) -> bool:
    """Make a directory and those above it, like ``mkdir -p``."""
    await owner.change(MakeDirectories(path, permission, user, owner.clock.wall_ms()))
    return True


def check_create(owner: NamespaceOwner, path: str, options: CreateOptions) -> None:
    """Refuse a CREATE before its bytes arrive, if it would be refused anyway."""
    owner.require_lease()
    owner.namespace.check_put(path, overwrite=options.overwrite)
    _check_there(owner, path, options)


def begin_create(owner: NamespaceOwner, path: str, options: CreateOptions) -> IncomingFile:
    """Note that the bytes of a file are on their way: from now on it has attributes. The caller ends it in
    ``owner.incoming``."""
    file = IncomingFile(
        path, options.permission, options.owner, options.replication, options.block_size, owner.clock.wall_ms()
    )
    owner.incoming.begin(file)
    return file


async def finish_create(
    owner: NamespaceOwner, path: str, upload: Upload, options: CreateOptions, file: IncomingFile | None = None
) -> None:
    """Make the file appear after its last byte. It is complete, and durable on return. ``file`` has the
    attributes that it was given meanwhile.

    Raises:
        WebHdfsError: the file does not appear, and nothing is left of it.
        NotOwnerError: the outcome is unknown.
    """

    def record() -> Record:
        _check_there(owner, path, options)
        return _put(owner, path, upload.pieces(), options, file)

    def on_applied() -> None:
        upload.take()
        if file is not None:
            owner.incoming.end(file)  # what is set from now on is set in the tree, wherever the file is then

    await _store(owner, upload, record, on_applied)


async def begin_growing(owner: NamespaceOwner, path: str, options: CreateOptions) -> GrowingFile:
    """Make an empty file that grows with the bytes of its upload.

    Raises:
        WebHdfsError: the file does not appear. NotOwnerError: the outcome is unknown.
    """
    followed: list[TrackedFile] = []
    file = begin_create(owner, path, options)  # it has attributes also while the next step has to wait
    try:
        await owner.room()
        _check_there(owner, path, options)

        def on_applied() -> None:
            followed.append(owner.namespace.follow(path))
            owner.incoming.end(file)

        await owner.change_now(_put(owner, path, (), options, file), on_applied)
    except BaseException:
        for each in followed:
            owner.namespace.unfollow(each)
        raise
    finally:
        owner.incoming.end(file)
    return GrowingFile(owner, followed[0])


def _check_there(owner: NamespaceOwner, path: str, options: CreateOptions) -> None:
    if not options.create and owner.namespace.find(path).node is None:
        raise NoSuchFileError(f"Can't overwrite non-existent {path}")


async def _store(
    owner: NamespaceOwner, upload: Upload, record: Callable[[], Record], on_applied: Callable[[], None] | None = None
) -> None:
    """Put the bytes into the tree with a record. ``on_applied``, which takes them, is called when the tree has them.

    If this fails before the tree has them, nothing of them is left, neither in memory nor as a blob. Bytes that the
    tree has are not removed, durable or not.
    """
    try:
        await upload.finish()
        await owner.room()
        await owner.change_now(
            record(), on_applied or upload.take
        )  # no pause between asking for the pieces and taking them
    except WebHdfsError:
        await owner.settled(owner.namespace.sequence)
        raise
    finally:
        await upload.abandon()


def _put(
    owner: NamespaceOwner, path: str, pieces: tuple[Piece, ...], options: CreateOptions, file: IncomingFile | None
) -> PutFile:
    """The record that makes a file, with all attributes that it was given while its bytes came: with one more record
    for some of them, they could be lost, or be those of another file that has the path then."""
    given = file or options
    now = owner.clock.wall_ms()
    new = NewFile(pieces, given.permission, given.owner, given.replication, given.block_size, now)
    group, accessed_ms = (None, None) if file is None else (file.group, file.accessed_ms)
    return PutFile(path, new, options.overwrite, options.create_parent, group, accessed_ms)


async def check_append(owner: NamespaceOwner, path: str) -> None:
    """Check a path in the first step of APPEND. A directory passes, and fails in the second step."""
    owner.require_lease()
    found = owner.namespace.find(path)
    await owner.settled(found.seen)
    if found.node is None:
        raise NoSuchFileError(f"File {path} not found.")


def begin_append(owner: NamespaceOwner, path: str) -> TrackedFile:
    """Begin to receive bytes for a file. They go to this file, also if it is renamed before the last byte.

    Raises:
        NoSuchFileError, PathExistsError: there is no file.
    """
    owner.require_lease()
    return owner.namespace.follow(path)


async def grow(owner: NamespaceOwner, file: TrackedFile) -> GrowingFile:
    """Have a file grow with the bytes of an APPEND. It is followed already."""
    owner.require_lease()
    return GrowingFile(owner, file)


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


async def remove_numbered(owner: NamespaceOwner, path: str, limits: Limits, digest: str, quiet_ms: int) -> bool:
    """Remove the files below a directory that are above the limits, by one record, if nobody writes there.

    Args:
        digest: of the listing that the caller has seen, by :func:`listing_digest`.
        quiet_ms: for how long nothing below the directory may have been written; with 0 the files' times do not count.

    Returns:
        False if there is nothing above the limits.

    Raises:
        NoSuchFileError: there is no such directory.
        PlainIOError: somebody writes there, or the listing is another one. Nothing was done.
        NotOwnerError: the outcome is unknown.
    """
    await owner.room()
    try:
        _require_unchanged(owner, path, digest, quiet_ms)
    except WebHdfsError:
        await owner.settled(owner.namespace.sequence)
        raise
    return (await owner.change_now(RemoveNumbered(path, limits, owner.clock.wall_ms()))).value


def _require_unchanged(owner: NamespaceOwner, path: str, digest: str, quiet_ms: int) -> None:
    directory = owner.namespace.find(path).node
    if not isinstance(directory, DirectoryNode):
        raise NoSuchFileError(f"Directory {path} does not exist.")
    if (written := owner.incoming.below(path)) is not None:
        raise PlainIOError(f"{written} is being written now: stop the query first")
    files = list(files_below(directory))
    newest, node = max(files, key=lambda file: file[1].modified_ms, default=("", None))
    ago_ms = quiet_ms if node is None else owner.clock.wall_ms() - node.modified_ms
    if node is not None and quiet_ms and ago_ms < -AHEAD_MAX_MS:
        raise PlainIOError(
            f"{path}/{newest} says that it will be written in {-ago_ms / 1000:.1f} s: a client gave it this time, or "
            "the clock of a gateway was wrong. Stop the query, and do not ask for a time without writes (quiet=0)"
        )
    if node is not None and quiet_ms and ago_ms < quiet_ms:
        raise PlainIOError(
            f"{path}/{newest} was written {max(ago_ms, 0) / 1000:.1f} s ago by {node.owner}: stop the query, and wait "
            f"until nothing was written for {quiet_ms / 1000:g} s"
        )
    if listing_digest((name, file.length, file.modified_ms) for name, file in files) != digest:
        raise PlainIOError(f"the files below {path} are not those that were looked at: look again")


async def set_attributes(owner: NamespaceOwner, record: SetAttributes) -> None:
    """Set attributes, also those of a file whose bytes are on their way. Raises NoSuchFileError."""
    await owner.room()
    opened = owner.incoming.at(record.path)
    if opened is not None:
        found = owner.namespace.find(record.path)
        opened.set(record)
        if found.node is None:
            await owner.settled(found.seen)
            return

    def touch() -> None:
        _touch(owner, record.path, owner.namespace.find(record.path).node)

    await owner.change_now(record, on_applied=touch)
