"""The image: a namespace at one transaction id as lines of JSON, to be loaded instead of the edits before it.

The first line says what does not belong to one inode; every other line is an inode, a directory before its children.
The last line counts them, so that an image that was cut short is not taken for a smaller namespace.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from examples.namenode_sim.errors import ReplayError
from examples.namenode_sim.inodes import DirectoryInode, FileInode, Inode, SymlinkInode
from examples.namenode_sim.namespace import HdfsNamespace
from journal_manager.hdfs.op_values import Block, CacheDirective, CachePool, HdfsAclEntry

FORMAT: Final = 1
_CHUNK_BYTES: Final = 1 << 16


def inodes_of(namespace: HdfsNamespace) -> Iterator[tuple[str, Inode]]:
    """(Path, inode) of everything, a directory before its children, children by name."""
    waiting: list[tuple[str, Inode]] = [("/", namespace.root)]
    while waiting:
        path, inode = waiting.pop()
        yield path, inode
        if isinstance(inode, DirectoryInode):
            above = path.rstrip("/")
            waiting += [(f"{above}/{name}", inode.children[name]) for name in sorted(inode.children, reverse=True)]


def write_image(namespace: HdfsNamespace) -> Iterator[bytes]:
    """The image in chunks. The namespace must not change before the last one was taken."""
    head = {
        "format": FORMAT,
        "txid": namespace.txid,
        "last_inode_id": namespace.last_inode_id,
        "last_block_id": namespace.last_block_id,
        "generation": namespace.generation,
        "cache_pools": list(namespace.cache_pools.values()),
        "cache_directives": list(namespace.cache_directives.values()),
        "requests": [(client.hex(), call, txid) for client, call, txid in namespace.requests.items()],
    }
    lines = [_line(head)]
    size, count = len(lines[0]), 0
    for path, inode in inodes_of(namespace):
        line = _line(_record(path, inode))
        lines.append(line)
        size, count = size + len(line), count + 1
        if size >= _CHUNK_BYTES:
            yield b"".join(lines)
            lines, size = [], 0
    lines.append(_line({"inodes": count}))
    yield b"".join(lines)


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":"), ensure_ascii=True).encode("ascii") + b"\n"


def _record(path: str, inode: Inode) -> dict[str, Any]:
    record: dict[str, Any] = {
        "path": path,
        "id": inode.id,
        "owner": inode.owner,
        "group": inode.group,
        "mode": inode.mode,
        "mtime": inode.mtime,
    }
    if inode.acl:
        record["acl"] = inode.acl
    if inode.xattrs:
        record["xattrs"] = [(n, name, None if v is None else v.hex()) for (n, name), v in inode.xattrs.items()]
    if inode.policy:
        record["policy"] = inode.policy
    if isinstance(inode, DirectoryInode):
        record["quota"] = [inode.name_quota, inode.space_quota]
        if inode.snapshots is not None:
            record["snapshots"] = inode.snapshots
    elif isinstance(inode, FileInode):
        record["file"] = [inode.atime, inode.replication, inode.block_size, inode.blocks]
        if inode.client is not None:
            record["client"] = inode.client
    elif isinstance(inode, SymlinkInode):
        record["link"] = [inode.atime, inode.target]
    return record


def read_image(chunks: Iterable[bytes]) -> HdfsNamespace:
    """The namespace of an image.

    Raises:
        ReplayError: these are not the bytes of a whole image.
    """
    namespace: HdfsNamespace | None = None
    count = 0
    ended = False
    try:
        for line in _lines(chunks):
            record = json.loads(line)
            if namespace is None:
                namespace = _restored_head(record)
            elif "inodes" in record:
                ended = record["inodes"] == count
            else:
                _restore(namespace, record)
                count += 1
    except (ValueError, KeyError, TypeError) as error:
        raise ReplayError(f"the image is damaged behind its inode {count}: {error}") from error
    if namespace is None or not ended:
        raise ReplayError(f"the image is not whole: it ends behind {count} inodes")
    return namespace


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
    if rest:
        yield rest


def _restored_head(head: dict[str, Any]) -> HdfsNamespace:
    if head["format"] != FORMAT:
        raise ReplayError(f"the image has format {head['format']}, and this program reads format {FORMAT}")
    namespace = HdfsNamespace()
    namespace.txid = head["txid"]
    namespace.last_inode_id = head["last_inode_id"]
    namespace.last_block_id = head["last_block_id"]
    namespace.generation = head["generation"]
    namespace.cache_pools = {pool[0]: CachePool(*pool) for pool in head["cache_pools"]}
    namespace.cache_directives = {each[0]: CacheDirective(*each) for each in head["cache_directives"]}
    for client, call, txid in head["requests"]:
        namespace.requests.note(bytes.fromhex(client), call, txid)
    return namespace


def _restore(namespace: HdfsNamespace, record: dict[str, Any]) -> None:
    path = record["path"]
    name = path.rpartition("/")[2]
    common = (record["id"], name, record["owner"], record["group"], record["mode"], record["mtime"])
    inode: Inode
    if "file" in record:
        atime, replication, block_size, blocks = record["file"]
        inode = file = FileInode(*common, atime, replication, block_size)
        file.blocks = tuple(Block(*block) for block in blocks)
        file.client = record.get("client")
    elif "link" in record:
        inode = SymlinkInode(*common, *record["link"])
    else:
        inode = directory = DirectoryInode(*common)
        directory.name_quota, directory.space_quota = record["quota"]
        directory.snapshots = record.get("snapshots")
    inode.acl = tuple(HdfsAclEntry(*entry) for entry in record.get("acl", ()))
    if "xattrs" in record:
        inode.xattrs = {(n, x): None if v is None else bytes.fromhex(v) for n, x, v in record["xattrs"]}
    inode.policy = record.get("policy", 0)
    namespace.restore(path, inode)


def listing(namespace: HdfsNamespace) -> Iterator[dict[str, Any]]:
    """Everything, sorted by path, in the form in which the end state of a real name node was captured."""
    for path, inode in sorted(inodes_of(namespace), key=lambda item: item[0]):
        yield describe(path, inode)


def describe(path: str, inode: Inode) -> dict[str, Any]:
    """What there is to say of one inode."""
    row: dict[str, Any] = {
        "path": path,
        "id": inode.id,
        "type": _TYPES[type(inode)],
        "owner": inode.owner,
        "group": inode.group,
        "mode": f"{inode.mode:04o}",
        "mtime": inode.mtime,
    }
    if isinstance(inode, DirectoryInode):
        row |= {"nsquota": inode.name_quota, "dsquota": inode.space_quota}
    elif isinstance(inode, FileInode):
        row |= {
            "atime": inode.atime,
            "replication": inode.replication,
            "preferred_block_size": inode.block_size,
            "blocks": [{"id": b.id, "genstamp": b.generation, "bytes": b.length} for b in inode.blocks],
            "length": inode.length,
        }
        if inode.client is not None:
            row["under_construction"] = inode.client
    elif isinstance(inode, SymlinkInode):
        row |= {"atime": inode.atime, "target": inode.target}
    return row


_TYPES: Final = {DirectoryInode: "DIRECTORY", FileInode: "FILE", SymlinkInode: "SYMLINK"}
