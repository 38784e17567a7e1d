"""The changes of the tree, and their bytes in the journal.

A record is a request with everything that chance and clocks decide. So the same records in the same order make the same
tree, including the inode numbers.

Bytes of one record: a JSON object, its length before it, then the inline bytes of its pieces, in order::

    u32 length of the JSON | JSON | bytes

The kind of a record is the edit's opcode. JSON keys are short. Unknown keys and kinds are refused, because skipping an
edit would make another tree. So the meaning of a kind never changes, all old records stay readable, and anything new
gets a kind of its own. These kinds exist:

    1 make directories   2 put a file   3 append   5 delete   6 set attributes   7 set quota
    8 move to a blob     only files that grow have it; versions without it refuse it
    9 put a file, with a group or an access time that it was given before its last byte; versions without it refuse it
    10 remove numbered   of several directories, the files above a number; versions without it refuse it
    11 set names quota   versions without it refuse it
    4 rename             with ``f`` (the file itself) by earlier versions, which kept temporary files in memory only

A temporary file of Spark is two records: 2 when its upload is answered, 4 (names only) when it is renamed. Earlier
versions read both, so gateways of one namespace may be replaced one by one.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from spark_wal.webhdfs.files.inodes import BlobRef, Piece
from spark_wal.webhdfs.files.numbered import Limits, NumberLimit

_LENGTH: Final = struct.Struct(">I")


class RenameMode(Enum):
    """What a rename does if its target exists."""

    BARE = "bare"
    """HDFS's older rename: it moves into an existing directory, never replaces a file, and answers false instead of
    failing."""

    NONE = "none"
    """Fails if the target exists."""

    OVERWRITE = "overwrite"
    """Replaces a file or an empty directory."""


@dataclass(frozen=True, slots=True)
class NewFile:
    """The file that a record brings with it."""

    pieces: tuple[Piece, ...]
    permission: int
    owner: str
    replication: int
    block_size: int
    at_ms: int

    @property
    def length(self) -> int:
        return sum(len(p) if isinstance(p, bytes) else p.length for p in self.pieces)


@dataclass(frozen=True, slots=True)
class MakeDirectories:
    path: str
    permission: int
    owner: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class PutFile:
    """A file appears under its name, complete."""

    path: str
    file: NewFile
    overwrite: bool
    create_parent: bool = True
    group: str | None = None
    """None: that of its directory."""
    accessed_ms: int | None = None
    """None: when it appeared."""


@dataclass(frozen=True, slots=True)
class AppendToFile:
    path: str
    pieces: tuple[Piece, ...]
    at_ms: int


@dataclass(frozen=True, slots=True)
class Rename:
    """A rename. ``carried`` is the source if it was a temporary file without a record of its own: then this record has
    both the bytes and the new name. Only journals of earlier versions have it."""

    source: str
    target: str
    mode: RenameMode
    at_ms: int
    carried: NewFile | None = None


@dataclass(frozen=True, slots=True)
class DeletePath:
    path: str
    recursive: bool
    at_ms: int


@dataclass(frozen=True, slots=True)
class SetAttributes:
    """The attributes to set. None leaves an attribute as it is."""

    path: str
    permission: int | None = None
    owner: str | None = None
    group: str | None = None
    replication: int | None = None
    modified_ms: int | None = None
    accessed_ms: int | None = None


@dataclass(frozen=True, slots=True)
class SetQuota:
    """The most bytes below a directory; None removes the limit. The directory is made if it does not exist."""

    path: str
    quota: int | None
    at_ms: int


@dataclass(frozen=True, slots=True)
class SetNamesQuota:
    """The most files and directories at and below a directory; None removes the limit. The directory is made if it does
    not exist. Versions that know no such limit refuse it, as they must: they would let more names in than a later
    replay does."""

    path: str
    quota: int | None
    at_ms: int


@dataclass(frozen=True, slots=True)
class MoveToBlob:
    """The bytes of a file from ``start`` on are in a blob now, and not in earlier records. Nothing else changes."""

    path: str
    start: int
    blob: BlobRef


@dataclass(frozen=True, slots=True)
class RemoveNumbered:
    """Files below a directory go in one step: those whose names begin with a greater number than a limit allows."""

    path: str
    limits: Limits
    at_ms: int


Record = (
    MakeDirectories
    | PutFile
    | AppendToFile
    | Rename
    | DeletePath
    | SetAttributes
    | SetQuota
    | SetNamesQuota
    | MoveToBlob
    | RemoveNumbered
)

_KINDS: Final[dict[type[Record], int]] = {
    MakeDirectories: 1,
    PutFile: 2,
    AppendToFile: 3,
    Rename: 4,
    DeletePath: 5,
    SetAttributes: 6,
    SetQuota: 7,
    MoveToBlob: 8,
    RemoveNumbered: 10,
    SetNamesQuota: 11,
}
_PUT_WITH_ATTRIBUTES: Final = 9
"""Of a PutFile, too; one without such attributes has the kind that all versions read."""


class RecordFormatError(Exception):
    """The bytes are not a record, or a newer program's record. It is never skipped (S9)."""


def encode_record(record: Record) -> tuple[int, bytes]:
    """Encode a record: the opcode and the body of the edit."""
    inline: list[bytes] = []
    fields = _ENCODE[type(record)](record, inline)
    given = isinstance(record, PutFile) and (record.group is not None or record.accessed_ms is not None)
    return _PUT_WITH_ATTRIBUTES if given else _KINDS[type(record)], pack_json(fields, inline)


def decode_record(opcode: int, body: bytes) -> Record:
    """Decode the record of an edit.

    Raises:
        RecordFormatError: the record is unknown to this program, or cut short.
    """
    decode = _DECODE.get(opcode)
    if decode is None:
        raise RecordFormatError(
            f"the edit has opcode {opcode}, and no kind of record has it: a newer program may have written it"
        )
    fields, inline = unpack_json(body)
    reader = InlineBytes(inline)
    try:
        record = decode(fields, reader)
    except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
        raise RecordFormatError(
            f"the record of opcode {opcode} lacks a field, or has one that cannot be read: {error}"
        ) from error
    if fields:
        raise RecordFormatError(
            f"the record of opcode {opcode} has unknown fields: {', '.join(sorted(fields))}; a newer program "
            "may have written it"
        )
    reader.finish()
    return record


# -- the envelope ----------------------------------------------------------------------------------------


_JSON: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


def pack_json(fields: dict[str, Any], inline: Iterable[bytes]) -> bytes:
    head = _JSON.encode(fields).encode("utf-8", "surrogatepass")
    return b"".join((_LENGTH.pack(len(head)), head, *inline))


def unpack_json(body: bytes) -> tuple[dict[str, Any], memoryview]:
    """Raises RecordFormatError if ``body`` is cut short or not JSON."""
    if len(body) < _LENGTH.size:
        raise RecordFormatError(f"a record of {len(body)} bytes is cut short")
    (length,) = _LENGTH.unpack_from(body)
    end = _LENGTH.size + length
    if end > len(body):
        raise RecordFormatError(f"a record of {len(body)} bytes is cut short: its head alone has {length}")
    try:
        fields = json.loads(body[_LENGTH.size : end].decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise RecordFormatError(f"the head of a record is not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise RecordFormatError("the head of a record is not a JSON object")
    return fields, memoryview(body)[end:]


class InlineBytes:
    """Hands out the inline bytes of a record, in order."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise RecordFormatError(
                f"a record is cut short: {size} more bytes are needed, {len(self._data) - self._at} are left"
            )
        taken = bytes(self._data[self._at : end])
        self._at = end
        return taken

    def finish(self) -> None:
        if self._at != len(self._data):
            raise RecordFormatError(f"a record has {len(self._data) - self._at} bytes too many")


def encode_pieces(pieces: tuple[Piece, ...], inline: list[bytes]) -> list[Any]:
    """Encode pieces as JSON: a number is that many inline bytes, a list is [blob, offset, length]."""
    fields: list[Any] = []
    for piece in pieces:
        if isinstance(piece, bytes):
            inline.append(piece)
            fields.append(len(piece))
        else:
            fields.append([piece.blob, piece.offset, piece.length])
    return fields


def decode_pieces(fields: list[Any], inline: InlineBytes) -> tuple[Piece, ...]:
    return tuple(inline.take(f) if isinstance(f, int) else BlobRef(str(f[0]), int(f[1]), int(f[2])) for f in fields)


# -- one by one ------------------------------------------------------------------------------------------


def _encode_file(file: NewFile, inline: list[bytes]) -> list[Any]:
    pieces = encode_pieces(file.pieces, inline)
    return [pieces, file.permission, file.owner, file.replication, file.block_size, file.at_ms]


def _decode_file(fields: list[Any], inline: InlineBytes) -> NewFile:
    pieces, permission, owner, replication, block_size, at_ms = fields
    return NewFile(decode_pieces(pieces, inline), permission, owner, replication, block_size, at_ms)


def _decode_blob(fields: list[Any], inline: InlineBytes) -> BlobRef:
    (piece,) = decode_pieces(fields, inline)
    if not isinstance(piece, BlobRef):
        raise RecordFormatError("the record names no blob")
    return piece


def _encode_rename(r: Rename, inline: list[bytes]) -> dict[str, Any]:
    fields: dict[str, Any] = {"s": r.source, "t": r.target, "m": r.mode.value, "at": r.at_ms}
    if r.carried is not None:
        fields["f"] = _encode_file(r.carried, inline)
    return fields


def _decode_rename(f: dict[str, Any], inline: InlineBytes) -> Rename:
    carried = _decode_file(f.pop("f"), inline) if "f" in f else None
    return Rename(f.pop("s"), f.pop("t"), RenameMode(f.pop("m")), f.pop("at"), carried)


_ATTRIBUTES: Final = ("permission", "owner", "group", "replication", "modified_ms", "accessed_ms")

_ENCODE: Final[dict[type[Any], Callable[[Any, list[bytes]], dict[str, Any]]]] = {
    MakeDirectories: lambda r, _: {"p": r.path, "mode": r.permission, "o": r.owner, "at": r.at_ms},
    PutFile: lambda r, i: {
        "p": r.path,
        "f": _encode_file(r.file, i),
        "ow": r.overwrite,
        "cp": r.create_parent,
        **{name: value for name in ("group", "accessed_ms") if (value := getattr(r, name)) is not None},
    },
    AppendToFile: lambda r, i: {"p": r.path, "c": encode_pieces(r.pieces, i), "at": r.at_ms},
    Rename: _encode_rename,
    DeletePath: lambda r, _: {"p": r.path, "r": r.recursive, "at": r.at_ms},
    SetAttributes: lambda r, _: {
        "p": r.path,
        **{name: value for name in _ATTRIBUTES if (value := getattr(r, name)) is not None},
    },
    SetQuota: lambda r, _: {"p": r.path, "q": r.quota, "at": r.at_ms},
    SetNamesQuota: lambda r, _: {"p": r.path, "n": r.quota, "at": r.at_ms},
    RemoveNumbered: lambda r, _: {
        "p": r.path,
        "l": [[each.directories, each.last] for each in r.limits],
        "at": r.at_ms,
    },
    MoveToBlob: lambda r, i: {"p": r.path, "st": r.start, "c": encode_pieces((r.blob,), i)},
}

_DECODE: Final[dict[int, Callable[[dict[str, Any], InlineBytes], Record]]] = {
    1: lambda f, _: MakeDirectories(f.pop("p"), f.pop("mode"), f.pop("o"), f.pop("at")),
    2: lambda f, i: PutFile(f.pop("p"), _decode_file(f.pop("f"), i), f.pop("ow"), f.pop("cp")),
    3: lambda f, i: AppendToFile(f.pop("p"), decode_pieces(f.pop("c"), i), f.pop("at")),
    4: _decode_rename,
    5: lambda f, _: DeletePath(f.pop("p"), f.pop("r"), f.pop("at")),
    6: lambda f, _: SetAttributes(f.pop("p"), **{name: f.pop(name) for name in _ATTRIBUTES if name in f}),
    7: lambda f, _: SetQuota(f.pop("p"), f.pop("q"), f.pop("at")),
    10: lambda f, _: RemoveNumbered(
        f.pop("p"), tuple(NumberLimit(str(names), int(last)) for names, last in f.pop("l")), f.pop("at")
    ),
    11: lambda f, _: SetNamesQuota(f.pop("p"), f.pop("n"), f.pop("at")),
    8: lambda f, i: MoveToBlob(f.pop("p"), f.pop("st"), _decode_blob(f.pop("c"), i)),
    9: lambda f, i: PutFile(
        f.pop("p"),
        _decode_file(f.pop("f"), i),
        f.pop("ow"),
        f.pop("cp"),
        **{name: f.pop(name) for name in ("group", "accessed_ms") if name in f},
    ),
}
