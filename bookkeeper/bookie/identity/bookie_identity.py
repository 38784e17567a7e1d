"""Whose directory this is: the bookie's id and port, chosen once, and its cookie.

The cookie is in every directory (``VERSION``) and in the metadata. It is made in three steps, each durable before the
next, so that a crash between any two is finished by the next start:

1. ``VERSION.pending`` in every directory,
2. the cookie in the metadata,
3. ``VERSION.pending`` renamed to ``VERSION`` in every directory.

A directory without a cookie, of a bookie that has one, is a lost disk; it is never used in silence.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bookkeeper.errors import CookieError, KeyExistsError, MetadataFormatError, NoSuchKeyError
from bookkeeper.ids import BookieId, bookie_id
from bookkeeper.meta.records import cookies as cookie_format
from bookkeeper.meta.records.cookies import Cookie, Cookies
from bookkeeper.seams import Disk
from bookkeeper.storage.durable_file import replace_file

COOKIE = "VERSION"
PENDING = "VERSION.pending"
IDENTITY = "identity.json"


@dataclass(frozen=True, slots=True)
class BookieIdentity:
    """What a bookie keeps from its first start on."""

    bookie_id: BookieId
    port: int


def read_identity(disk: Disk, directory: str) -> BookieIdentity | None:
    """What an earlier start has chosen.

    Raises:
        CookieError: the file is there and says something else.
    """
    path = os.path.join(directory, IDENTITY)
    if not disk.exists(path):
        return None
    try:
        found = json.loads(disk.read_file(path))
        return BookieIdentity(bookie_id(found["bookie_id"]), int(found["port"]))
    except (ValueError, KeyError, TypeError) as error:
        raise CookieError(f"{path} does not name a bookie: {error}") from error


def write_identity(disk: Disk, directory: str, identity: BookieIdentity) -> None:
    """Keep it for ever."""
    text = json.dumps({"bookie_id": identity.bookie_id, "port": identity.port})
    replace_file(disk, os.path.join(directory, IDENTITY), text.encode() + b"\n")


def refuse_java(disk: Disk, directories: Sequence[str]) -> None:
    """Nothing may be written into a directory of Apache's bookie, in Java: its files are in ``current`` below each.

    Raises:
        CookieError: one of them is.
    """
    for directory in directories:
        current = os.path.join(directory, "current")
        try:
            names = disk.list(current)
        except (FileNotFoundError, NotADirectoryError):
            continue
        found = [name for name in sorted(names) if name in _JAVA or name.endswith(_JAVA_ENDINGS)]
        if found:
            raise CookieError(
                f"{directory} belongs to a bookie of Apache BookKeeper in Java{_whose(disk, current)} ({current} holds "
                f"{found[0]}): its files cannot be read here and were not touched. Start Java's bookie on it again, or "
                "give this bookie directories and a --bookie-id of its own and move the data with `bk bookies drain`"
            )


_JAVA = ("VERSION", "lastMark", "lastId", "DIRTY", "BOOKIE_STATUS", "locations", "ledgers")
_JAVA_ENDINGS = (".txn", ".log", ".idx")


def _whose(disk: Disk, current: str) -> str:
    """Of which bookie, as far as its cookie says."""
    try:
        return f", {cookie_format.decode(disk.read_file(os.path.join(current, COOKIE))).bookie_id}"
    except (OSError, MetadataFormatError):
        return ""


def refuse_strangers(disk: Disk, cookie: Cookie, directories: Sequence[str]) -> None:
    """Asks the disk alone, so it comes before what metadata say is believed or doubted: another cluster's are no older
    state of this one's.

    Raises:
        CookieError: a directory belongs to another bookie or cluster.
    """
    for directory in directories:
        found = _read(disk, directory, COOKIE)
        if found is not None and found != cookie:
            raise CookieError(
                f"{directory} is not this bookie's: {_difference(found, cookie)}; "
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
    final = {directory: _read(disk, directory, COOKIE) for directory in directories}
    pending = {directory: _read(disk, directory, PENDING) for directory in directories}
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
        raise CookieError(f"the cluster knows {cookie.bookie_id} otherwise: {_difference(stored, cookie)}")
    for directory in directories:
        if final[directory] is None:
            if pending[directory] != cookie:
                raise CookieError(
                    f"{directory} is empty, but {cookie.bookie_id} has joined the cluster before: "
                    "mount its disk; if that is lost, join with empty directories under another --bookie-id"
                )
            if last_start > made:
                raise CookieError(
                    f"{directory} was prepared for {cookie.bookie_id} and never used; that bookie has served since: "
                    "its data is on another disk"
                )
            _finish(disk, directory)
    return False


async def _make(
    disk: Disk, cookies: Cookies, cookie: Cookie, directories: Sequence[str], before: Callable[[], None]
) -> None:
    for directory in directories:
        strangers = [name for name in disk.list(directory) if name not in _OURS]
        if strangers:
            raise CookieError(f"{directory} is not empty and has no cookie: it holds {strangers[0]}")
    before()
    for directory in directories:
        replace_file(disk, os.path.join(directory, PENDING), cookie_format.encode(cookie))
    try:
        await cookies.write(cookie, None)
    except KeyExistsError as error:
        remove_files(disk, [os.path.join(directory, PENDING) for directory in directories])
        raise CookieError(f"another bookie has just joined as {cookie.bookie_id}") from error
    for directory in directories:
        _finish(disk, directory)


_OURS = {PENDING, PENDING + ".tmp", IDENTITY, IDENTITY + ".tmp", "bookie.lock", "journal", "ledgers", "lost+found"}


async def undo_first_start(disk: Disk, cookies: Cookies, cookie: Cookie, directories: Sequence[str]) -> None:
    """Nobody knows the bookie any more, and the directories are as empty as before: of a first start that
    :func:`settle_cookie` let pass, and that came to its end before the bookie served anybody. A crash in the middle
    leaves a bookie that is known and absent, as a first start that is cut short does.

    Raises:
        MetadataError: the store cannot say or do it: then the next start goes on where this one was.
    """
    found = await cookies.read(cookie.bookie_id)
    if found.value != cookie:
        return
    remove_files(
        disk, [os.path.join(place, name) for place in directories for name in disk.list(place) if name not in _KEPT]
    )
    await cookies.delete(cookie.bookie_id, found.version)
    remove_files(disk, [os.path.join(directory, COOKIE) for directory in directories])


_KEPT = {COOKIE, "lost+found", "bookie.lock", "journal", "ledgers"}


def remove_files(disk: Disk, paths: Sequence[str]) -> None:
    """Durably; what is not there is no mistake."""
    for path in paths:
        if disk.exists(path):
            disk.unlink(path)
    for directory in {os.path.dirname(path) for path in paths}:
        disk.sync_directory(directory)


def _finish(disk: Disk, directory: str) -> None:
    disk.rename(os.path.join(directory, PENDING), os.path.join(directory, COOKIE))
    disk.sync_directory(directory)


def _read(disk: Disk, directory: str, name: str) -> Cookie | None:
    """The cookie in a file; None if there is none, or half of a pending one."""
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
    """Directories of an earlier version may stand in it as they were typed: seen from here, like then."""
    journals, ledgers = (tuple(map(os.path.abspath, places)) for places in (cookie.journal_dirs, cookie.ledger_dirs))
    return replace(cookie, journal_dirs=journals, ledger_dirs=ledgers)


def _difference(found: Cookie, expected: Cookie) -> str:
    for name in ("instance_id", "bookie_id", "journal_dirs", "ledger_dirs", "index_dirs"):
        there, here = getattr(found, name), getattr(expected, name)
        if there != here:
            return f"{name} is {there!r} there, {here!r} here"
    return "nothing"
