"""Whether a file of state is whole, and which other files it needs. Pure: bytes in, a verdict out.

HDFS-backed store   N.snapshot, N.delta            compressed blocks, each with a checksum (lz4, the default)
RocksDB             N.zip, N.changelog, SSTs/*     a zip names its SST files and their sizes
second format       N_id.zip, N_id.changelog       a changelog begins with the ids of the versions since the last
                                                   snapshot; N_id.zip.crc has length and CRC32C
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import crc32c

from spark_wal.checkpoints.layout import StateFile
from spark_wal.checkpoints.lz4_blocks import MAGIC, BlockStreamError, read_stream

_TEXT: Final = struct.Struct(">H")
_WITH_IDS: Final = (b"v3", b"v4")


@dataclass(frozen=True, slots=True)
class FileCheck:
    """What the bytes of a file of state say."""

    problem: str | None = None
    """Why it cannot be used; None if it can."""
    needs: Mapping[str, int] = field(default_factory=dict)
    """Paths of the SST files that it needs -> their sizes in bytes."""
    earlier: Mapping[int, str] = field(default_factory=dict)
    """Of a changelog in the second format: version -> unique id since the snapshot from which it goes on."""
    is_unchecked: bool = False
    """Only its length could be looked at: it is compressed with something else than lz4."""


def check_state_file(file: StateFile, data: bytes, sidecar: bytes | None = None) -> FileCheck:
    """Check a file of state. ``sidecar``: Spark's checksum of it, if there is one."""
    if not data:
        return FileCheck("it is empty")
    if sidecar is not None and (problem := _against_sidecar(data, sidecar)) is not None:
        return FileCheck(problem)
    if file.path.endswith(".zip"):
        return _check_zip(file, data)
    if not data.startswith(MAGIC[: len(data)]):
        codec = _other_codec(data)
        return FileCheck(None if codec else "it does not begin like compressed state", is_unchecked=True)
    try:
        plain = read_stream(data)
        return FileCheck(earlier=_earlier(plain) if file.unique_id else {})
    except BlockStreamError as error:
        return FileCheck(str(error))


def _against_sidecar(data: bytes, sidecar: bytes) -> str | None:
    try:
        noted = json.loads(sidecar)
        size, value, algorithm = int(noted["mainFileSize"]), int(noted["value"]), str(noted["algorithm"])
    except (ValueError, KeyError, TypeError):
        return None  # the checksum is what is damaged: the caller sees that by itself
    if size != len(data):
        return f"it has {len(data)} bytes, and its checksum file says {size}"
    if algorithm == "CRC32C" and crc32c.crc32c(data) != value & 0xFFFFFFFF:
        return "its bytes do not match its checksum file"
    return None


def _check_zip(file: StateFile, data: bytes) -> FileCheck:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            bad = archive.testzip()
            if bad is not None:
                return FileCheck(f"{bad} in it does not match its checksum")
            _, _, text = archive.read("metadata").partition(b"\n")
        noted = json.loads(text)
        folder = f"{file.partition.directory}/SSTs/"
        return FileCheck(needs={folder + str(f["dfsSstFileName"]): int(f["sizeBytes"]) for f in noted["sstFiles"]})
    except (zipfile.BadZipFile, zlib.error, EOFError, LookupError, ValueError, TypeError, RuntimeError, OSError):
        return FileCheck("it is no whole zip file")


def _other_codec(data: bytes) -> bool:
    return data.startswith((b"\x28\xb5\x2f\xfd", b"\x82SNAPPY\x00", b"\xffsNaPpY", b"ZV"))  # zstd, snappy, lzf


def _earlier(plain: bytes) -> dict[int, str]:
    if plain[:2] != b"\x00\x02" or plain[2:4] not in _WITH_IDS:
        return {}
    try:
        (length,) = _TEXT.unpack_from(plain, 4)
        found = json.loads(plain[6 : 6 + length])
        return {int(each["version"]): str(each["checkpointUniqueId"]) for each in found}
    except (struct.error, ValueError, KeyError, TypeError) as error:
        raise BlockStreamError("the list of versions at its beginning is damaged") from error
