"""The operations of a file system, on the owner's session: what a client can ask, without HTTP.

Two kinds of files meet here: those in the tree, which are durable, and Spark's temporary files, which are
not (see ``temp_files``). Whatever is asked of a temporary file beyond reading, renaming and deleting it
makes it an ordinary file first.

What a reply says is fixed before the first pause, then the reply waits until that is durable.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from spark_wal.webhdfs.content import BlobMissingError, BlobStore
from spark_wal.webhdfs.inodes import GROUP, DirectoryNode, FileNode, Node, Piece
from spark_wal.webhdfs.namespace import Applied, Summary
from spark_wal.webhdfs.owner import Owner
from spark_wal.webhdfs.paths import is_temporary, parent_of
from spark_wal.webhdfs.records import (
    AppendToFile,
    Delete,
    MakeDirectories,
    NewFile,
    PutFile,
    Rename,
    RenameMode,
    SetAttributes,
)
from spark_wal.webhdfs.refusals import (
    DirectoryNotEmptyError,
    EndOfFileRefusal,
    FileExistsRefusal,
    NoSuchFileError,
    PlainIOError,
    Refusal,
)
from spark_wal.webhdfs.temp_files import TempFile
from spark_wal.webhdfs.uploads import Upload


@dataclass(frozen=True, slots=True)
class Status:
    """Of one file or directory, as it was at one moment."""

    name: str
    """Empty when it is the one that was asked for."""
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
    def of(cls, node: Node, name: str = "") -> Status:
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

    @classmethod
    def of_temp(cls, temp: TempFile, name: str = "") -> Status:
        size, at = temp.upload.size, temp.at_ms
        return cls(
            name, 0, False, size, 0, temp.permission, temp.owner, GROUP, at, at, temp.replication, temp.block_size
        )


@dataclass(frozen=True, slots=True)
class Opened:
    """Bytes to send."""

    pieces: tuple[Piece, ...]
    length: int
    blobs: BlobStore

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Raises PlainIOError: bytes that must be there are not (S9)."""
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
    """Of a CREATE."""

    overwrite: bool
    create_parent: bool
    permission: int
    owner: str
    replication: int
    block_size: int


# -- reading ---------------------------------------------------------------------------------------------


async def status(owner: Owner, path: str) -> Status:
    """Raises NoSuchFileError and what ``Namespace.find`` raises."""
    owner.check_sure()
    temp = owner.temps.get(path)
    if temp is not None:
        return Status.of_temp(temp)
    found = owner.namespace.find(path)
    answer = Status.of(found.node) if found.node is not None else None
    await owner.settled(found.seen)
    if answer is None:
        raise NoSuchFileError(f"File does not exist: {path}")
    return answer


async def listing(owner: Owner, path: str) -> list[Status]:
    """A directory's children in order of their names; a file lists as itself, with an empty name."""
    owner.check_sure()
    temp = owner.temps.get(path)
    if temp is not None:
        return [Status.of_temp(temp)]
    found = owner.namespace.find(path)
    seen = found.seen
    if found.node is None:
        await owner.settled(seen)
        raise NoSuchFileError(f"File {path} does not exist.")
    if isinstance(found.node, FileNode):
        answer = [Status.of(found.node)]
    else:
        children, temps = found.node.children, owner.temps.names_in(path)
        answer = [
            Status.of_temp(temps[name], name) if name in temps else Status.of(children[name], name)
            for name in sorted(children.keys() | temps.keys())
        ]
        seen = max(seen, owner.namespace.seen_listing(found.node))
    await owner.settled(seen)
    return answer


async def summary(owner: Owner, path: str) -> Summary:
    """Counts below a path."""
    owner.check_sure()
    temp = owner.temps.get(path)
    if temp is not None:
        return Summary(0, 1, temp.upload.size, None)
    found = owner.namespace.find(path)
    answer = owner.namespace.summary(found.node) if found.node is not None else None
    await owner.settled(owner.namespace.sequence)
    if answer is None:
        raise NoSuchFileError(f"File does not exist: {path}")
    return answer


async def check_open(owner: Owner, path: str, offset: int) -> None:
    """What the first step of OPEN looks at: a directory passes, and fails in the second step."""
    owner.check_sure()
    temp = owner.temps.get(path)
    if temp is not None:
        length: int | None = temp.upload.size
    else:
        found = owner.namespace.find(path)
        length = found.node.length if isinstance(found.node, FileNode) else None
        await owner.settled(found.seen)
        if found.node is None:
            raise NoSuchFileError(f"File {path} not found.")
    if length and offset >= length:
        raise PlainIOError(f"Offset={offset} out of the range [0, {length}); OPEN, path={path}")


async def open_file(owner: Owner, path: str, offset: int, length: int | None) -> Opened:
    """The bytes from ``offset``, at most ``length`` of them.

    Raises:
        NoSuchFileError: nothing there, or a directory. EndOfFileRefusal: ``offset`` lies behind the end.
    """
    owner.check_sure()
    pieces, size = await _content(owner, path)
    if offset > size:
        raise EndOfFileRefusal("Cannot seek after EOF")
    end = size if length is None else min(size, offset + length)
    return Opened(tuple(cut(pieces, offset, end)), end - offset, owner.blobs)


async def _content(owner: Owner, path: str) -> tuple[tuple[Piece, ...], int]:
    temp = owner.temps.get(path)
    if temp is not None:
        await temp.upload.ready()
        return temp.upload.pieces(), temp.upload.size
    found = owner.namespace.find(path)
    node = found.node
    pieces, length = (node.pieces, node.length) if isinstance(node, FileNode) else ((), 0)
    await owner.settled(found.seen)
    if node is None:
        raise NoSuchFileError(f"File does not exist: {path}")
    if isinstance(node, DirectoryNode):
        raise NoSuchFileError(f"Path is not a file: {path}")
    return pieces, length


def cut(pieces: tuple[Piece, ...], start: int, end: int) -> list[Piece]:
    """The parts of ``pieces`` that make up the bytes from ``start`` to ``end``."""
    taken: list[Piece] = []
    at = 0
    for piece in pieces:
        size = len(piece) if isinstance(piece, bytes) else piece.length
        first, last = max(start - at, 0), min(end - at, size)
        if first < last:
            if isinstance(piece, bytes):
                taken.append(piece[first:last])
            else:
                taken.append(type(piece)(piece.blob, piece.offset + first, last - first))
        at += size
    return taken


# -- changing --------------------------------------------------------------------------------------------


async def make_directories(owner: Owner, path: str, permission: int, user: str) -> bool:
    """Like ``mkdir -p``."""
    if owner.temps.get(path) is not None:
        raise FileExistsRefusal(f"Path is not a directory: {path}")
    await owner.change(MakeDirectories(path, permission, user, owner.clock.wall_ms()))
    return True


def check_create(owner: Owner, path: str, options: CreateOptions) -> None:
    """Say no before the bytes come, where that is known already."""
    owner.check_sure()
    owner.namespace.check_put(path, overwrite=options.overwrite)
    if not options.overwrite and owner.temps.get(path) is not None:
        raise FileExistsRefusal(f"{path} for client 127.0.0.1 already exists")


async def finish_create(owner: Owner, path: str, upload: Upload, options: CreateOptions) -> None:
    """The last byte is here: the file appears, whole (S2). Durable on return, unless its name is temporary.

    Raises:
        Refusal: it does not appear; nothing is left behind.
        NotOwnerError: unknown.
    """
    await _complete(upload)
    try:
        if is_temporary(path) and await _keep_as_temp(owner, path, upload, options):
            return
        await upload.ready()
        await owner.change(PutFile(path, _new_file(owner, upload, options), options.overwrite, options.create_parent))
    except Refusal:
        await upload.abandon()
        raise
    await _drop_temp(owner, path)
    upload.release()


async def _complete(upload: Upload) -> None:
    """The end of an upload; one that cannot be made durable leaves nothing, not even in the budget."""
    try:
        await upload.finish()
    except BaseException:
        await upload.abandon()
        raise


async def _keep_as_temp(owner: Owner, path: str, upload: Upload, options: CreateOptions) -> bool:
    """Remember a temporary file; False if there is an ordinary file of that name."""
    check_create(owner, path, options)
    if owner.namespace.find(path).node is not None:
        return False
    if owner.namespace.find(parent_of(path)).node is None and options.create_parent:
        await owner.change(MakeDirectories(parent_of(path), 0o755, options.owner, owner.clock.wall_ms()))
        check_create(owner, path, options)  # much may have happened meanwhile
    temp = TempFile(
        upload, options.permission, options.owner, options.replication, options.block_size, owner.clock.wall_ms()
    )
    replaced = owner.temps.put(path, temp)
    if replaced is not None:
        await replaced.upload.abandon()
    return True


def _new_file(owner: Owner, upload: Upload, options: CreateOptions) -> NewFile:
    return NewFile(
        upload.pieces(),
        options.permission,
        options.owner,
        options.replication,
        options.block_size,
        owner.clock.wall_ms(),
    )


async def check_append(owner: Owner, path: str) -> None:
    """The first step of APPEND: a directory passes, and fails in the second step."""
    owner.check_sure()
    if owner.temps.get(path) is None and owner.namespace.find(path).node is None:
        await owner.settled(owner.namespace.sequence)
        raise NoSuchFileError(f"File {path} not found.")


async def finish_append(owner: Owner, path: str, upload: Upload) -> None:
    """The bytes of one APPEND become part of the file, all of them or none."""
    await _complete(upload)
    try:
        await _settle_temp(owner, path)
        await upload.ready()
        await owner.change(AppendToFile(path, upload.pieces(), owner.clock.wall_ms()))
    except Refusal:
        await upload.abandon()
        raise
    upload.release()


async def rename(owner: Owner, source: str, target: str, mode: RenameMode) -> bool:
    """Atomic and durable on return (S4). A temporary file is carried into the tree by the rename's record.

    Returns:
        False where HDFS's bare rename says false; the other modes refuse instead.
    """
    if owner.temps.get(target) is not None:
        await _settle_temp(owner, target)
    for path in owner.temps.below(source):
        await _settle_temp(owner, path)
    temp = owner.temps.get(source)
    if temp is not None:
        await temp.upload.ready()
    await owner.room()
    # No pause from here to the moment the tree has changed: a repeated request finds either the file or its trace.
    temp = owner.temps.pop(source)
    record = Rename(source, target, mode, owner.clock.wall_ms(), temp.file() if temp is not None else None)
    applied: Applied | None = None
    try:
        applied = await owner.change(record)
    except Refusal:
        if temp is not None:
            owner.temps.put(source, temp)
        raise
    if temp is not None:
        if applied.changed:
            temp.upload.release()
        else:
            owner.temps.put(source, temp)
    return applied.value


async def delete(owner: Owner, path: str, *, recursive: bool) -> bool:
    """False if there was nothing."""
    owner.check_sure()
    if owner.temps.get(path) is not None:
        await _drop_temp(owner, path)
        return True
    below = owner.temps.below(path)
    if below and not recursive:
        raise DirectoryNotEmptyError(f"`{path} is non empty': Directory is not empty")
    applied = await owner.change(Delete(path, recursive, owner.clock.wall_ms()))
    if applied.changed:
        for temp in below:
            await _drop_temp(owner, temp)
    return applied.value


async def set_attributes(owner: Owner, record: SetAttributes) -> None:
    """Raises NoSuchFileError."""
    await _settle_temp(owner, record.path)
    await owner.change(record)


async def _drop_temp(owner: Owner, path: str) -> None:
    temp = owner.temps.pop(path)
    if temp is not None:
        await temp.upload.abandon()


async def _settle_temp(owner: Owner, path: str) -> None:
    """Make a temporary file an ordinary one."""
    temp = owner.temps.get(path)
    if temp is None:
        return
    await temp.upload.ready()
    await owner.room()
    if owner.temps.get(path) is not temp:
        return
    owner.temps.pop(path)
    await owner.change(PutFile(path, temp.file(), overwrite=True))
    temp.upload.release()
