"""Cookies: which bookie a directory belongs to, kept in the directory and in the metadata store.

The text is Apache BookKeeper's (cookie layout version 5)::

    5
    bookieHost: "192.0.2.1:3181"
    journalDir: "/data/journal"
    ledgerDirs: "1\\t/data/ledgers"
    instanceId: "4a9fcb3e-..."

The bookies that have a cookie are the *known* ones; removing it is how a bookie is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from google.protobuf import text_format

from bookkeeper.amounts import counted
from bookkeeper.errors import MetadataFormatError
from bookkeeper.ids import BookieId, is_bookie_id
from bookkeeper.meta import metadata_pb2 as pb
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store import (
    MetadataStore,
    Version,
    Versioned,
    Watch,
    names_below,
    settled_create,
    settled_delete,
    settled_set,
)

LAYOUT_VERSION: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Cookie:
    """A bookie's id, its directories in their order, and its cluster. Cookies are compared whole."""

    bookie_id: BookieId
    journal_dirs: tuple[str, ...]
    ledger_dirs: tuple[str, ...]
    index_dirs: tuple[str, ...] | None = None
    """Index directories; None if they are the ledger directories, and then not written."""
    instance_id: str | None


def encode(cookie: Cookie) -> bytes:
    """The bytes of VERSION files and cookie values."""
    message = pb.CookieFormat(
        bookieHost=cookie.bookie_id,
        journalDir=",".join(cookie.journal_dirs),
        ledgerDirs=_counted(cookie.ledger_dirs),
    )
    if cookie.instance_id is not None:
        message.instanceId = cookie.instance_id
    if cookie.index_dirs is not None:
        message.indexDirs = _counted(cookie.index_dirs)
    return f"{LAYOUT_VERSION}\n{text_format.MessageToString(message, as_utf8=False)}".encode()


def decode(data: bytes) -> Cookie:
    """The reverse of encode; layout versions 4 and 5, and the four plain lines of version 3.

    Raises:
        MetadataFormatError: the bytes are no cookie.
    """
    version, _, body = data.decode(errors="replace").partition("\n")
    try:
        match version:
            case "3":
                bookie, journal, ledgers = body.rstrip("\n").split("\n")
                message = pb.CookieFormat(bookieHost=bookie, journalDir=journal, ledgerDirs=ledgers)
            case "4" | "5":
                message = pb.CookieFormat()
                text_format.Parse(body, message)
            case _:
                raise MetadataFormatError(
                    f"a cookie has layout version {version[:20]}, which this program does not know"
                )
        return _from_message(message)
    except (text_format.ParseError, ValueError) as error:
        raise MetadataFormatError(f"a cookie cannot be read: {error}") from error


def _from_message(message: pb.CookieFormat) -> Cookie:
    return Cookie(
        bookie_id=BookieId(message.bookieHost),
        journal_dirs=tuple(message.journalDir.split(",")),
        ledger_dirs=_uncounted(message.ledgerDirs),
        index_dirs=_uncounted(message.indexDirs) if message.HasField("indexDirs") else None,
        instance_id=message.instanceId if message.HasField("instanceId") else None,
    )


def _counted(directories: tuple[str, ...]) -> str:
    return "\t".join((str(len(directories)), *directories))


def _uncounted(text: str) -> tuple[str, ...]:
    count, *directories = text.split("\t")
    if int(count) != len(directories):
        raise MetadataFormatError(f"a cookie says {counted(int(count), 'directory')}, and lists {len(directories)}")
    return tuple(directories)


class Cookies:
    """The cookies of one cluster. Every change is a compare-and-set; after a lost reply the value is read again."""

    def __init__(self, store: MetadataStore, paths: Paths) -> None:
        self._store = store
        self._paths = paths

    async def read(self, bookie: BookieId) -> Versioned[Cookie]:
        """Read the cookie after a sync. Raises: NoSuchKeyError, MetadataFormatError."""
        path = self._paths.cookie(bookie)
        await self._store.sync(path)
        found = await self._store.get(path)
        return found.over(decode(found.value))

    async def write(self, cookie: Cookie, expected: Version | None) -> Version:
        """Create the cookie (``expected`` None) or replace the version that was read.

        Raises:
            KeyExistsError: there is another cookie; an equal one counts as ours.
            MetadataConflictError, NoSuchKeyError.
        """
        path = self._paths.cookie(cookie.bookie_id)
        if expected is None:
            return await settled_create(self._store, path, encode(cookie), parents=True)
        return await settled_set(self._store, path, encode(cookie), expected)

    async def delete(self, bookie: BookieId, expected: Version) -> None:
        """Forget the bookie. Raises: NoSuchKeyError, MetadataConflictError."""
        await settled_delete(self._store, self._paths.cookie(bookie), expected)

    async def known(self) -> list[BookieId]:
        """Every bookie that ever joined and was not forgotten, sorted; read after a sync."""
        names = await names_below(self._store, self._paths.cookies, fresh=True)
        return [BookieId(name) for name in names if is_bookie_id(name)]

    def watch(self, callback: Callable[[], None]) -> Watch:
        """Call back (on the loop) when a cookie may have appeared or gone."""
        return self._store.watch_children(self._paths.cookies, callback)
