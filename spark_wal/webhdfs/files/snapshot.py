"""The whole tree as bytes, and back.

One line of the format is ``u32 length | body``, the body packed as a record's (JSON head, inline bytes)::

    {"format": ..., "sequence": ..., "last_inode": ...}
    one per inode, parents first, siblings by name, the root included: equal trees have equal bytes
    {"end": number of inodes}

The format is 2 where a directory has a quota of names, so that versions which do not keep one refuse it by its number;
otherwise 1.

A snapshot that ends early, or holds anything unknown, is refused (S9), so that it never passes for a smaller tree. The
store that keeps it adds a checksum.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

from spark_wal.webhdfs.files.inodes import DirectoryNode, FileNode, Node
from spark_wal.webhdfs.files.namespace import Namespace
from spark_wal.webhdfs.files.paths import child_of
from spark_wal.webhdfs.files.records import (
    InlineBytes,
    RecordFormatError,
    decode_pieces,
    encode_pieces,
    pack_json,
    unpack_json,
)

FORMAT: Final = 2
_WITHOUT_NAMES: Final = 1
_LENGTH: Final = struct.Struct(">I")
_CHUNK: Final = 256 * 1024


def dump(namespace: Namespace) -> list[bytes]:
    """Encode the tree, in chunks. This runs without a pause, so the snapshot shows one moment."""
    chunks: list[bytes] = []
    pending: list[bytes] = []
    size = 0
    for line in _lines(namespace):
        pending.append(_LENGTH.pack(len(line)))
        pending.append(line)
        size += len(line)
        if size >= _CHUNK:
            chunks.append(b"".join(pending))
            pending.clear()
            size = 0
    chunks.append(b"".join(pending))
    return chunks


def load(data: bytes) -> Namespace:
    """Decode the tree of a snapshot.

    Raises:
        RecordFormatError: the snapshot is damaged, cut short, or a newer program's.
    """
    lines = _split(data)
    head, _ = next(lines, ({}, memoryview(b"")))
    if head.get("format") not in (_WITHOUT_NAMES, FORMAT):
        raise RecordFormatError(
            f"the snapshot has format {head.get('format')}, and this program reads formats up to {FORMAT}"
        )
    namespace = Namespace()
    count = 0
    for fields, inline in lines:
        if "end" in fields:
            if fields["end"] != count or next(lines, None) is not None:
                raise RecordFormatError(
                    f"the snapshot holds {count} inodes and should hold {fields['end']}, or goes on behind its end"
                )
            namespace.sequence = head["sequence"]
            namespace.last_inode = head["last_inode"]
            return namespace
        path = fields["path"]
        node = _decode_node(fields, InlineBytes(inline))
        if path == "/":
            assert isinstance(node, DirectoryNode)
            namespace.memory.remove(namespace.root)
            namespace.root = node
            namespace.memory.add(node)
        else:
            namespace.adopt(path, node)
        count += 1
    raise RecordFormatError(f"the snapshot ends after {count} inodes, without its end mark")


def _lines(namespace: Namespace) -> Iterator[bytes]:
    number = FORMAT if namespace.limits_names else _WITHOUT_NAMES
    yield pack_json({"format": number, "sequence": namespace.sequence, "last_inode": namespace.last_inode}, ())
    count = 0
    stack: list[tuple[str, Node]] = [("/", namespace.root)]
    while stack:
        path, node = stack.pop()
        inline: list[bytes] = []
        yield pack_json(_encode_node(path, node, inline), inline)
        count += 1
        if isinstance(node, DirectoryNode):
            stack.extend((child_of(path, name), node.children[name]) for name in sorted(node.children, reverse=True))
    yield pack_json({"end": count}, ())


def _split(data: bytes) -> Iterator[tuple[dict[str, Any], memoryview]]:
    at = 0
    while at < len(data):
        if at + _LENGTH.size > len(data):
            raise RecordFormatError("the snapshot is cut short")
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        if at + length > len(data):
            raise RecordFormatError("the snapshot is cut short")
        yield unpack_json(data[at : at + length])
        at += length


def _encode_node(path: str, node: Node, inline: list[bytes]) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "path": path,
        "id": node.inode,
        "mode": node.permission,
        "o": node.owner,
        "g": node.group,
        "mt": node.modified_ms,
        "at": node.accessed_ms,
    }
    if node.renamed_from is not None:
        fields["from"] = node.renamed_from
    if isinstance(node, DirectoryNode):
        fields |= {"below": node.bytes_below, "quota": node.quota}
        if node.names_quota is not None:
            fields["names"] = node.names_quota
    else:
        fields |= {"c": encode_pieces(node.pieces, inline), "len": node.length}
        fields |= {"rep": node.replication, "bs": node.block_size}
        if node.touched_ms != node.modified_ms:
            fields["tt"] = node.touched_ms
    return fields


def _decode_node(f: dict[str, Any], inline: InlineBytes) -> Node:
    try:
        if "c" not in f:
            return DirectoryNode(
                f["id"],
                f["mode"],
                f["o"],
                f["g"],
                f["mt"],
                f["at"],
                bytes_below=f["below"],
                quota=f["quota"],
                names_quota=f.get("names"),
                renamed_from=f.get("from"),
            )
        pieces = decode_pieces(f["c"], inline)
        return FileNode(
            inode=f["id"],
            permission=f["mode"],
            owner=f["o"],
            group=f["g"],
            modified_ms=f["mt"],
            accessed_ms=f["at"],
            pieces=pieces,
            length=f["len"],
            replication=f["rep"],
            block_size=f["bs"],
            renamed_from=f.get("from"),
            touched_ms=f.get("tt", f["mt"]),
        )
    except KeyError as error:
        raise RecordFormatError(f"an inode of the snapshot lacks its field {error}") from error
