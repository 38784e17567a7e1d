"""The bookie's id, port and cookie. They are chosen once and say to which bookie a directory belongs.

The cookie is in every directory (``VERSION``) and in the metadata. A first start makes it in three steps. Each step is
durable before the next one begins, so the next start can finish what a crash has cut short:

1. ``VERSION.pending`` in every directory,
2. the cookie in the metadata,
3. ``VERSION`` in every directory; then ``VERSION.pending`` is removed.

If the metadata hold a cookie and a directory holds none, its disk was lost. The bookie then refuses to start.

A directory that has no cookie is locked while it gets one, by the lock that its storage holds afterwards: of two
bookies that are given the same directory at the same time one gets it, and the other finds the cookie, or the lock.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from bookkeeper.codec import crc32c
from bookkeeper.errors import CookieError, KeyExistsError, MetadataFormatError, NoSuchKeyError
from bookkeeper.ids import BookieId, bookie_id
from bookkeeper.meta.records import cookies as cookie_format
from bookkeeper.meta.records.cookies import Cookie, Cookies
from bookkeeper.seams import Disk, Lock
from bookkeeper.storage.base.durable_file import replace_file
from bookkeeper.storage.start.start import LOCK

COOKIE = "VERSION"
PENDING = "VERSION.pending"
IDENTITY = "identity.json"


@dataclass(frozen=True, slots=True)
class BookieIdentity:
    """The id and the port that a bookie keeps from its first start on."""

    bookie_id: BookieId
    port: int


def read_identity(disk: Disk, directory: str) -> BookieIdentity | None:
    """Read the id and port that an earlier start has chosen.

    Raises:
        CookieError: the file exists and cannot be read.
    """
    path = os.path.join(directory, IDENTITY)
    if not disk.exists(path):
        return None
    try:
        found = json.loads(disk.read_file(path))
        identity = BookieIdentity(bookie_id(found["bookie_id"]), int(found["port"]))
        if found.get("crc", _crc(identity)) != _crc(identity):  # files of versions before 0.2 have none
            raise ValueError("its checksum does not match")
        if unknown := found.keys() - {"bookie_id", "port", "crc"}:
            raise ValueError(f"it holds {sorted(unknown)[0]!r}, which is not known here")
        return identity
    except (ValueError, KeyError, TypeError) as error:
        raise CookieError(
            f"{path} should name this bookie and cannot be read: {error}; put the file back from a copy"
        ) from error


def write_identity(disk: Disk, directory: str, identity: BookieIdentity) -> None:
    """Write the id and port into the directory. They are durable when this returns."""
    text = json.dumps({"bookie_id": identity.bookie_id, "port": identity.port, "crc": _crc(identity)})
    replace_file(disk, os.path.join(directory, IDENTITY), text.encode() + b"\n")


def _crc(identity: BookieIdentity) -> int:
    return crc32c(f"{identity.bookie_id} {identity.port}".encode())


def refuse_java(disk: Disk, directories: Sequence[str]) -> None:
    """Refuse directories that hold data of Apache's bookie in Java: its files are in ``current`` below each.

    Raises:
        CookieError: one of them holds such data. Nothing was written.
    """
    for directory in directories:
        current = os.path.join(directory, "current")
        try:
            names = disk.list(current)
        except OSError:  # it is not there; or its disk does not work, which others find and say
            continue
        found = [name for name in sorted(names) if name in _JAVA or name.endswith(_JAVA_ENDINGS)]
        if found:
            name = _named_bookie(disk, current)
            raise CookieError(
                f"{directory} belongs to a bookie of Apache BookKeeper in Java{name} ({current} holds {found[0]}): "
                "its files cannot be read here and were not touched. Start Java's bookie on it again, or give "
                "this bookie directories and a --bookie-id of its own and move the data with `bk bookies drain`"
            )


_JAVA = ("VERSION", "lastMark", "lastId", "DIRTY", "BOOKIE_STATUS", "locations", "ledgers")
_JAVA_ENDINGS = (".txn", ".log", ".idx")


def _named_bookie(disk: Disk, current: str) -> str:
    """The id of the bookie, for an error message; empty if its cookie cannot be read."""
    try:
        return f", {cookie_format.decode(disk.read_file(os.path.join(current, COOKIE))).bookie_id}"
    except (OSError, MetadataFormatError):
        return ""


def refuse_strangers(disk: Disk, cookie: Cookie, directories: Sequence[str], *, growing: bool = False) -> None:
    """Refuse directories of another bookie or cluster.

    This looks at the disk alone and comes before the check of the metadata's age. Otherwise the metadata of another
    cluster could be taken for an older state of this one's.

    Args:
        growing: the bookie may have had other directories when it made the cookie.

    Raises:
        CookieError: a directory belongs to another bookie or cluster.
    """
    for directory in directories:
        found = read_cookie(disk, directory, COOKIE)
        if growing and found is not None:
            found = replace(found, journal_dirs=cookie.journal_dirs, ledger_dirs=cookie.ledger_dirs)
        if found is not None and found != cookie:
            raise CookieError(
                f"{directory} does not belong to this bookie: {_difference(found, cookie)}; "
                "start each bookie with its own directories and its own id"
            )


async def settle_cookie(
    disk: Disk,
    cookies: Cookies,
    cookie: Cookie,
    directories: Sequence[str],
    *,
    last_start: int = 0,
    before: Callable[[], None] = lambda: None,
) -> bool:
    """Make the cookie of a new bookie, or check that of an old one, in all ``directories`` and in the metadata.

    Args:
        last_start: the store's transaction with which a bookie of this id last went beyond this step; 0 if none has. If
            that was after the cookie was made, a first start that was left half done here is not finished: the id has
            its data on another disk.
        before: called when nothing forbids a first start any more, and nothing of it is written yet.

    Returns:
        True if this is the bookie's first start.

    Raises:
        CookieError: a directory belongs to another bookie or cluster, is new or wiped while the bookie is not, or the
            bookie was forgotten (decommissioned) meanwhile.
        MetadataUnavailableError: the store does not answer.
    """
    final = {directory: read_cookie(disk, directory, COOKIE) for directory in directories}
    pending = {directory: read_cookie(disk, directory, PENDING) for directory in directories}
    refuse_strangers(disk, cookie, directories)
    try:
        found_cookie = await cookies.read(cookie.bookie_id)
        stored, made = _absolute(found_cookie.value), found_cookie.transaction
    except NoSuchKeyError:
        stored, made = None, 0
    if stored is None:
        for directory, found in final.items():
            if found is not None:
                raise CookieError(
                    f"{directory} holds data of {cookie.bookie_id}, which the cluster has forgotten; "
                    "empty the directories to join as a new bookie"
                )
        await _make(disk, cookies, cookie, directories, before)
        return True
    if stored != cookie:
        raise CookieError(
            f"the cookie of {cookie.bookie_id} in the metadata is another: {_difference(stored, cookie)}; "
            "start the bookie with the directories it had before"
        )
    _finish_all(disk, cookie, final, pending, used_since=last_start > made)
    return False


def _finish_all(
    disk: Disk,
    cookie: Cookie,
    final: Mapping[str, Cookie | None],
    pending: Mapping[str, Cookie | None],
    *,
    used_since: bool,
) -> None:
    """Finish a first start that a crash cut short, in each directory that has no cookie yet. Raises: CookieError: its
    disk was lost, or the bookie was ``used_since`` with another disk."""
    for directory in final:
        if final[directory] is not None and pending[directory] is not None:
            remove_files(disk, [os.path.join(directory, PENDING)])
        elif final[directory] is None:
            if pending[directory] != cookie:
                raise CookieError(
                    f"{directory} is empty, but {cookie.bookie_id} has joined the cluster before: "
                    "mount its disk; if that is lost, join with empty directories under another --bookie-id"
                )
            if used_since:
                raise CookieError(
                    f"{directory} was prepared for {cookie.bookie_id} and never used, and that bookie has served "
                    "since: its data is on another disk; start it with that disk"
                )
            _finish(disk, directory, cookie)


async def settle_grown_cookie(
    disk: Disk, cookies: Cookies, cookie: Cookie, directories: Sequence[str], new: Sequence[str]
) -> None:
    """Make the cookie name the directories that a bookie has now, in all of them and in the metadata. A crash in the
    middle leaves some that name the former ones; the next call goes on.

    Args:
        directories: those that the bookie uses.
        new: those of them that it has not used before.

    Raises:
        CookieError: a directory belongs to another bookie or cluster, is empty although it was used, or is not empty
            although it was not; or the bookie was forgotten meanwhile.
        MetadataError: the store does not answer.
    """
    refuse_strangers(disk, cookie, directories, growing=True)
    try:
        found = await cookies.read(cookie.bookie_id)
    except NoSuchKeyError:
        raise CookieError(
            f"the cluster has forgotten {cookie.bookie_id}, whose data are in {directories[0]}; empty the directories "
            "to join as a new bookie"
        ) from None
    stored = _absolute(found.value)
    if replace(stored, journal_dirs=cookie.journal_dirs, ledger_dirs=cookie.ledger_dirs) != cookie:
        raise CookieError(f"the cookie of {cookie.bookie_id} in the metadata is another: {_difference(stored, cookie)}")
    for directory in directories:
        if read_cookie(disk, directory, COOKIE) is not None:
            continue
        if directory not in new:
            raise CookieError(
                f"{directory} has no cookie, but {cookie.bookie_id} has used it before: mount its disk; or, if that "
                "is lost, give it up with `bk bookie lose-directory`"
            )
        if strangers := [name for name in disk.list(directory) if name not in _OURS]:
            raise CookieError(
                f"{directory} is not empty and has no cookie: it holds {strangers[0]}; give the bookie an empty "
                "directory"
            )
    with _alone(disk, [each for each in directories if read_cookie(disk, each, COOKIE) is None]):
        refuse_strangers(disk, cookie, directories, growing=True)  # another bookie may have been quicker
        for directory in directories:
            if read_cookie(disk, directory, COOKIE) != cookie:
                replace_file(disk, os.path.join(directory, COOKIE), cookie_format.encode(cookie))
        if stored != cookie:
            await cookies.write(cookie, found.version)


async def _make(
    disk: Disk, cookies: Cookies, cookie: Cookie, directories: Sequence[str], before: Callable[[], None]
) -> None:
    for directory in directories:
        strangers = [name for name in disk.list(directory) if name not in _OURS]
        if strangers:
            raise CookieError(
                f"{directory} is not empty and has no cookie: it holds {strangers[0]}; "
                "give the bookie an empty directory"
            )
    with _alone(disk, directories):
        refuse_strangers(disk, cookie, directories)  # another bookie may have been quicker
        before()
        for directory in directories:
            replace_file(disk, os.path.join(directory, PENDING), cookie_format.encode(cookie))
        try:
            await cookies.write(cookie, None)
        except KeyExistsError as error:
            remove_files(disk, [os.path.join(directory, PENDING) for directory in directories])
            raise CookieError(f"another bookie has just joined as {cookie.bookie_id}") from error
        for directory in directories:
            _finish(disk, directory, cookie)


@contextmanager
def _alone(disk: Disk, directories: Sequence[str]) -> Iterator[None]:
    """No other bookie gets one of these directories meanwhile, and none has it open.

    Raises:
        CookieError: another one has it, or is just getting it.
    """
    locks: list[Lock] = []
    try:
        for directory in directories:
            try:
                locks.append(disk.lock(os.path.join(directory, LOCK)))
            except BlockingIOError as error:
                raise CookieError(
                    f"{directory} is in use by another bookie, or is just being given to one: choose another directory"
                ) from error
        yield
    finally:
        for lock in locks:
            lock.release()


_OURS = {
    *(PENDING, PENDING + ".tmp", COOKIE + ".tmp", IDENTITY, IDENTITY + ".tmp"),
    *("bookie.lock", LOCK, "journal", "ledgers", "lost+found"),
}


def remove_files(disk: Disk, paths: Sequence[str]) -> None:
    """Remove the files, durably. Files that do not exist are passed over."""
    for path in paths:
        if disk.exists(path):
            disk.unlink(path)
    for directory in {os.path.dirname(path) for path in paths}:
        disk.sync_directory(directory)


def _finish(disk: Disk, directory: str, cookie: Cookie) -> None:
    """Not by a rename: a crash may lose the new name of a file and keep that the old one has gone."""
    replace_file(disk, os.path.join(directory, COOKIE), cookie_format.encode(cookie))
    remove_files(disk, [os.path.join(directory, PENDING)])


def read_cookie(disk: Disk, directory: str, name: str) -> Cookie | None:
    """The cookie in a directory's file of this name; None if there is no file, or a pending one was not written to its
    end.

    Raises:
        CookieError: it is damaged.
    """
    path = os.path.join(directory, name)
    if not disk.exists(path):
        return None
    try:
        return _absolute(cookie_format.decode(disk.read_file(path)))
    except MetadataFormatError as error:
        if name == PENDING:
            return None
        raise CookieError(f"{path} is damaged: {error}") from error


def _absolute(cookie: Cookie) -> Cookie:
    """The cookie with absolute directories. Earlier versions wrote them as the operator had typed them."""
    journals, ledgers = (tuple(map(os.path.abspath, places)) for places in (cookie.journal_dirs, cookie.ledger_dirs))
    return replace(cookie, journal_dirs=journals, ledger_dirs=ledgers)


_COOKIE_WORDS: Final = {
    "instance_id": "cluster",
    "bookie_id": "bookie id",
    "journal_dirs": "journal directory",
    "ledger_dirs": "ledger directory",
    "index_dirs": "index directory",
}
"""The fields of a cookie that must agree, in the words of a message."""


def _shown(value: str | tuple[str, ...] | None) -> str:
    if isinstance(value, tuple):
        return ", ".join(value)
    return value or "not given"


def _difference(found: Cookie, expected: Cookie) -> str:
    for name in _COOKIE_WORDS:
        there, here = getattr(found, name), getattr(expected, name)
        if there != here:
            return f"its {_COOKIE_WORDS[name]} is {_shown(there)}, this bookie's is {_shown(here)}"
    return "nothing"
