"""What a client may ask for, and which edits do it. A machine: it looks at the namespace and changes nothing.

    ops = decide(namespace, request, now_ms)     the edits, in order; none if all is as it should be already

The edits fit when they are applied at once and in order. A request that is no whole success is refused as a whole.

Requests that must not be done twice leave their id in an edit, so that every replica knows them. The others may be
repeated: making a directory that is there, closing a file that is closed, setting what is set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from examples.namenode_sim.errors import InodeExistsError, InodeKindError, OpenFileError, RequestError
from examples.namenode_sim.inodes import UNLIMITED, DirectoryInode, FileInode
from examples.namenode_sim.namespace import OVERWRITE, UNCHANGED, HdfsNamespace
from journal_manager.hdfs.hdfs_ops import (
    NO_CALL,
    NO_CLIENT,
    AddBlockOp,
    AddOp,
    AllocateBlockIdOp,
    AppendOp,
    CloseOp,
    ConcatDeleteOp,
    DeleteOp,
    HdfsOp,
    MkdirOp,
    RenameOp,
    SetGenstampV2Op,
    SetOwnerOp,
    SetPermissionsOp,
    SetQuotaOp,
    SetReplicationOp,
    SymlinkOp,
    TimesOp,
    TruncateOp,
)
from journal_manager.hdfs.op_values import Block, Permissions

_LONGEST_PATH: Final = 8000
_MACHINE: Final = "127.0.0.1"
_UMASKED_FILE, _UMASKED_DIRECTORY = 0o644, 0o755


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """One request of one client. A repetition has the same client and call."""

    verb: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    client_id: bytes = NO_CLIENT
    """16 bytes that no other client uses."""
    call_id: int = NO_CALL
    user: str = "root"


def decide(namespace: HdfsNamespace, request: ClientRequest, now_ms: int) -> list[HdfsOp]:
    """The edits that do what is asked for.

    Raises:
        NamespaceError: it cannot be done; the error says why. RequestError: it is no request of this name node.
    """
    chosen = _VERBS.get(request.verb)
    if chosen is None:
        raise RequestError(f"this name node knows no {request.verb!r}; it knows {', '.join(sorted(_VERBS))}")
    for name, value in request.arguments.items():
        for path in value if isinstance(value, list | tuple) else [value]:
            if name in ("path", "source", "target", "sources"):
                _check_path(path)
    try:
        return chosen(_Asked(namespace, request, now_ms), **request.arguments)
    except TypeError as error:
        raise RequestError(f"{request.verb} was asked for with arguments that do not fit: {error}") from error


def _check_path(path: object) -> None:
    if not isinstance(path, str) or not path.startswith("/") or len(path.encode("utf-8", "replace")) > _LONGEST_PATH:
        raise RequestError(f"{str(path)[:100]!r} is no absolute path of at most {_LONGEST_PATH} bytes")
    names = path.split("/")[1:]
    if path != "/" and any(name in ("", ".", "..") for name in names):
        raise RequestError(f"{path!r} has an empty name, or one of dots")


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request, the namespace that it meets, and the time."""

    namespace: HdfsNamespace
    request: ClientRequest
    now: int

    @property
    def ids(self) -> dict[str, Any]:
        return {"client_id": self.request.client_id, "call_id": self.request.call_id}

    @property
    def writer(self) -> str:
        return f"client_{self.request.client_id.hex()}"

    def missing_parents(self, path: str, mode: int = _UMASKED_DIRECTORY) -> tuple[list[HdfsOp], str]:
        """The edits that make the directories above ``path``, and the group of what is made below them."""
        names = path.split("/")[1:-1]
        above, made = "", list[HdfsOp]()
        group = self.namespace.root.group
        number = self.namespace.last_inode_id
        for name in names:
            above += "/" + name
            found = None if made else self.namespace.find(above)
            if found is None:
                number += 1
                made.append(MkdirOp(number, above, self.now, self.now, Permissions(self.request.user, group, mode)))
            elif isinstance(found, DirectoryInode):
                group = found.group
            else:
                raise InodeKindError(f"{above} is no directory")
        return made, group


def _mkdirs(asked: _Asked, path: str, mode: int = _UMASKED_DIRECTORY) -> list[HdfsOp]:
    found = asked.namespace.find(path)
    if isinstance(found, DirectoryInode):
        return []
    if found is not None:
        raise InodeExistsError(f"there is something else at {path} already")
    return asked.missing_parents(path + "/", mode)[0]


def _create(asked: _Asked, path: str, overwrite: bool = False, replication: int = 3) -> list[HdfsOp]:
    found = asked.namespace.find(path)
    if found is not None and not (overwrite and isinstance(found, FileInode)):
        raise InodeExistsError(f"there is something at {path} already")
    if isinstance(found, FileInode) and found.client is not None:
        raise OpenFileError(f"{path} is open for writing by {found.client}")
    made, group = asked.missing_parents(path)
    number = asked.namespace.last_inode_id + len(made) + 1
    owner = Permissions(asked.request.user, group, _UMASKED_FILE)
    add = AddOp(number, path, replication, asked.now, asked.now, 1 << 27, (), owner)
    add = add._replace(client_name=asked.writer, client_machine=_MACHINE, overwrite=overwrite, **asked.ids)
    return [*made, add]


def _add_block(asked: _Asked, path: str, length: int = 0) -> list[HdfsOp]:
    """``length``: what the last block has by now."""
    file = _written(asked, path)
    number, generation = asked.namespace.last_block_id + 1, asked.namespace.generation + 1
    new = Block(number, 0, generation)
    before = tuple(block._replace(length=length) for block in file.blocks[-1:])
    return [
        AllocateBlockIdOp(number),
        SetGenstampV2Op(generation),
        AddBlockOp(path, (*before, new), asked.request.client_id, asked.request.call_id),
    ]


def _written(asked: _Asked, path: str) -> FileInode:
    file = asked.namespace.open_file(path)
    if file.client != asked.writer:
        raise OpenFileError(f"{path} is open for writing by {file.client}, and not by {asked.writer}")
    return file


def _close(asked: _Asked, path: str, length: int) -> list[HdfsOp]:
    """``length``: what the last block has in the end."""
    file = asked.namespace.file(path)
    blocks = (*file.blocks[:-1], *(block._replace(length=length) for block in file.blocks[-1:]))
    if file.client is None and file.blocks == blocks:
        return []
    _written(asked, path)
    owner = Permissions(file.owner, file.group, file.mode)
    return [CloseOp(0, path, file.replication, asked.now, file.atime, file.block_size, blocks, owner)]


def _append(asked: _Asked, path: str) -> list[HdfsOp]:
    asked.namespace.closed_file(path)
    return [AppendOp(path, asked.writer, _MACHINE, False, **asked.ids)]


def _truncate(asked: _Asked, path: str, length: int) -> list[HdfsOp]:
    """At the end of a block, or through one; then the file is open until it is closed."""
    file = asked.namespace.closed_file(path)
    if not 0 <= length <= file.length:
        raise OpenFileError(f"{path} has {file.length} bytes, and cannot be cut to {length}")
    if length == file.length:
        return []
    end = 0
    for block in file.blocks:
        end += block.length
        if end >= length:
            break
    if end == length or length == 0:
        return [TruncateOp(path, asked.writer, _MACHINE, length, asked.now)]
    generation = asked.namespace.generation + 1
    cut = Block(block.id, block.length, generation)
    return [SetGenstampV2Op(generation), TruncateOp(path, asked.writer, _MACHINE, length, asked.now, (cut,))]


def _concat(asked: _Asked, target: str, sources: list[str]) -> list[HdfsOp]:
    into = asked.namespace.closed_file(target)
    found = [asked.namespace.closed_file(source) for source in sources]
    if not found or into in found or len(set(sources)) != len(sources):
        raise RequestError(f"{target} needs sources that are different files")
    return [ConcatDeleteOp(target, tuple(sources), asked.now, **asked.ids)]


def _rename(asked: _Asked, source: str, target: str, overwrite: bool = False) -> list[HdfsOp]:
    moved = asked.namespace.inode(source)
    if target == source or target.startswith(source.rstrip("/") + "/"):
        raise InodeKindError(f"{source} cannot be moved to {target}")
    asked.namespace.place(target)
    former = asked.namespace.find(target)
    if former is not None:
        if not overwrite:
            raise InodeExistsError(f"there is something at {target} already")
        if isinstance(former, DirectoryInode) != isinstance(moved, DirectoryInode):
            raise InodeKindError(f"a file and a directory cannot replace each other: {source} and {target}")
        if isinstance(former, DirectoryInode) and former.children:
            raise InodeExistsError(f"the directory {target} is not empty, and cannot be replaced")
    return [RenameOp(source, target, asked.now, bytes([OVERWRITE if overwrite else 0]), **asked.ids)]


def _delete(asked: _Asked, path: str, recursive: bool = False) -> list[HdfsOp]:
    found = asked.namespace.inode(path)
    asked.namespace.place(path)
    if isinstance(found, DirectoryInode) and found.children and not recursive:
        raise InodeExistsError(f"the directory {path} is not empty")
    return [DeleteOp(path, asked.now, **asked.ids)]


def _set_owner(asked: _Asked, path: str, owner: str = "", group: str = "") -> list[HdfsOp]:
    asked.namespace.inode(path)
    return [SetOwnerOp(path, owner, group)]


def _set_permission(asked: _Asked, path: str, mode: int) -> list[HdfsOp]:
    asked.namespace.inode(path)
    if not 0 <= mode <= 0o1777:
        raise RequestError(f"{mode} is no mode")
    return [SetPermissionsOp(path, mode)]


def _set_times(asked: _Asked, path: str, mtime: int = UNCHANGED, atime: int = UNCHANGED) -> list[HdfsOp]:
    asked.namespace.inode(path)
    return [TimesOp(path, mtime, atime)]


def _set_replication(asked: _Asked, path: str, replication: int) -> list[HdfsOp]:
    asked.namespace.file(path)
    return [SetReplicationOp(path, replication)]


def _set_quota(asked: _Asked, path: str, names: int = UNLIMITED, space: int = UNLIMITED) -> list[HdfsOp]:
    asked.namespace.directory(path)
    return [SetQuotaOp(path, names, space)]


def _symlink(asked: _Asked, path: str, target: str) -> list[HdfsOp]:
    asked.namespace.free_place(path)
    number = asked.namespace.last_inode_id + 1
    owner = Permissions(asked.request.user, asked.namespace.root.group, 0o777)
    return [SymlinkOp(number, path, target, asked.now, asked.now, owner, **asked.ids)]


_VERBS: Final[dict[str, Callable[..., list[HdfsOp]]]] = {
    "mkdirs": _mkdirs,
    "create": _create,
    "add_block": _add_block,
    "close": _close,
    "append": _append,
    "truncate": _truncate,
    "concat": _concat,
    "rename": _rename,
    "delete": _delete,
    "set_owner": _set_owner,
    "set_permission": _set_permission,
    "set_times": _set_times,
    "set_replication": _set_replication,
    "set_quota": _set_quota,
    "symlink": _symlink,
}
