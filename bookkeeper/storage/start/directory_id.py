"""The random id of a directory. The header of every data file has it.

A bookie publishes its directory's id (K32), so that exchanged files of two bookies are noticed, although each bookie
has its cookie. Files of versions without ids have 0, and belong to the bookie that has them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from struct import Struct

from bookkeeper.errors import CookieError, CorruptionError, UnsupportedFormatError
from bookkeeper.seams import Disk
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.base.durable_file import BLOCK, TRANSIENT, unstamp
from bookkeeper.storage.base.manifest import NAME, read_manifest
from bookkeeper.storage.journal.journal_format import FileHeader

_SECOND = Struct(">QQ")


class ForeignDirectoryError(CookieError):
    """A file here belongs to another directory."""

    def __init__(self, path: str, found: int, expected: int) -> None:
        super().__init__(
            f"{path} belongs to another bookie's directory ({found:016x}; this one is {expected:016x}): put every "
            "bookie's files back where they were, journal and ledgers together; nothing was changed here"
        )
        self.path, self.directory_id = path, found


def is_unused(disk: Disk, config: StorageConfig) -> bool:
    """Whether the directories hold no data of a bookie."""
    return next(_data_files(disk, config), None) is None and not disk.exists(f"{config.ledger_dir}/{NAME}")


def directory_id_of(disk: Disk, config: StorageConfig) -> int:
    """The id in the files here; 0 if they have none, or cannot be read."""
    return next((found for _, found in _ids(disk, config)), 0)


def refuse_foreign(disk: Disk, config: StorageConfig, expected: int) -> None:
    """Refuse a directory with files of another directory. Damaged or unreadable headers are ignored here.

    Raises:
        ForeignDirectoryError: a file belongs to another directory.
    """
    for path, found in _ids(disk, config):
        if found != expected:
            raise ForeignDirectoryError(path, found, expected)


def _ids(disk: Disk, config: StorageConfig) -> Iterator[tuple[str, int]]:
    """Every file with an id, and the id. The manifest comes first."""
    try:
        manifest = read_manifest(disk, config.ledger_dir)
        if manifest is not None and manifest.directory_id:
            yield f"{config.ledger_dir}/{NAME}", manifest.directory_id
    except (CorruptionError, UnsupportedFormatError):
        pass
    for path, decode in _data_files(disk, config):
        file = disk.open(path, write=False)
        try:
            found = decode(file.pread(BLOCK, 0), path)
        except (CorruptionError, UnsupportedFormatError):
            continue
        except OSError as error:
            if error.errno in TRANSIENT:
                raise
            continue
        finally:
            file.close()
        if found:
            yield path, found


def _data_files(disk: Disk, config: StorageConfig) -> Iterator[tuple[str, Callable[[bytes, str], int]]]:
    for directory, pattern, decode in (
        (config.ledger_dir, r"[0-9a-f]{6,}\.log", _of_log),
        (config.ledger_dir, r"[0-9a-f]{16}\.index", _of_segment),
        (config.journal_dir, r"[0-9a-f]{16}\.journal", _of_journal),
    ):
        for name in disk.list(directory):
            if re.fullmatch(pattern, name):
                yield f"{directory}/{name}", decode


def _of_log(head: bytes, path: str) -> int:
    return _second(unstamp(head, b"BKEL", 1, path))


def _of_segment(head: bytes, path: str) -> int:
    return _second(unstamp(head, b"BKIX", 1, path))


def _second(body: bytes) -> int:
    """The directory's id, which follows the file's own number in both headers."""
    return int(_SECOND.unpack_from(body)[1]) if len(body) >= _SECOND.size else 0


def _of_journal(head: bytes, path: str) -> int:
    return FileHeader.decode(head, path).directory_id
