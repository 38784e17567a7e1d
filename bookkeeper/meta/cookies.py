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

from bookkeeper.ids import BookieId
from bookkeeper.meta.paths import Paths
from bookkeeper.meta.store import MetadataStore, Version, Versioned, Watch


@dataclass(frozen=True, slots=True, kw_only=True)
class Cookie:
    """Compared whole: id, directories in their order, cluster."""

    bookie_id: BookieId
    journal_dirs: tuple[str, ...]
    ledger_dirs: tuple[str, ...]
    index_dirs: tuple[str, ...] | None = None
    """None: the same as ledger_dirs; then it is not written."""
    instance_id: str | None


def encode(cookie: Cookie) -> bytes:
    """The bytes of VERSION files and cookie values."""
    raise NotImplementedError


def decode(data: bytes) -> Cookie:
    """The reverse of encode; layout versions 4 and 5 and the four plain lines of version 3.

    Raises:
        MetadataFormatError: not such bytes.
    """
    raise NotImplementedError


class Cookies:
    """The cookies of one cluster. Every change is compare-and-set, a lost reply is settled (M8)."""

    def __init__(self, store: MetadataStore, paths: Paths) -> None:
        self._store = store
        self._paths = paths

    async def read(self, bookie: BookieId) -> Versioned[Cookie]:
        """Raises: NoSuchKeyError, MetadataFormatError."""
        raise NotImplementedError

    async def write(self, cookie: Cookie, expected: Version | None) -> Version:
        """Create it (``expected`` None) or replace the version that was read.

        Raises:
            KeyExistsError, MetadataConflictError, NoSuchKeyError.
        """
        raise NotImplementedError

    async def delete(self, bookie: BookieId, expected: Version) -> None:
        """Forget the bookie. Raises: NoSuchKeyError, MetadataConflictError."""
        raise NotImplementedError

    async def known(self) -> list[BookieId]:
        """Every bookie that ever joined and was not forgotten, sorted; read after a sync (Z6)."""
        raise NotImplementedError

    def watch(self, callback: Callable[[], None]) -> Watch:
        """Call back when a cookie appears or goes."""
        raise NotImplementedError
