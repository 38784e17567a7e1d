"""Replicated ledgers: create, append, read, fence, recover. The front door.

    from bookkeeper import BookKeeper

    async with BookKeeper.connect("embedded:///data/bk?bookies=3") as bk:
        async with await bk.create_ledger(password=b"secret") as ledger:
            entry_id = await ledger.append(b"hello")

Everything that applications need is listed in ``__all__``; it is loaded when first used, so that a bookie
does not pay for the client. For threads there is a second door, :mod:`bookkeeper.sync`. Errors are all in
:mod:`bookkeeper.errors`.

The modules beside the rooms are what every floor may use: ``seams``, ``ids``, ``errors``, ``outcome``, ``settings``,
``option_types``, ``secret``, ``metrics``, ``exposition``, ``rate_limited_log``, ``program_log``, ``compression``,
``background_loop``, ``install``.

It may be imported before pytest looks at it (PYTEST_DONT_REWRITE).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bookkeeper import errors
    from bookkeeper.auth.config import AuthConfig
    from bookkeeper.client.bookkeeper import BookKeeper
    from bookkeeper.client.config import ClientConfig
    from bookkeeper.client.entry import LedgerEntry
    from bookkeeper.client.operators import Operator
    from bookkeeper.client.read.read_handle import ReadHandle
    from bookkeeper.client.write.advanced_handle import AdvancedHandle
    from bookkeeper.client.write.write_handle import WriteHandle
    from bookkeeper.encryption import EncryptionConfig, KeyProvider
    from bookkeeper.errors import BookKeeperError
    from bookkeeper.ids import NO_ENTRY, BookieId, EntryId, LedgerId
    from bookkeeper.ledger import DigestType, LedgerMetadata, LedgerState, QuorumSpec
    from bookkeeper.meta.store import MetadataStore
    from bookkeeper.net.tls import TlsConfig
    from bookkeeper.seams import Seams

__all__ = [
    "NO_ENTRY",
    "AdvancedHandle",
    "AuthConfig",
    "BookKeeper",
    "BookKeeperError",
    "BookieId",
    "ClientConfig",
    "DigestType",
    "EncryptionConfig",
    "EntryId",
    "KeyProvider",
    "LedgerEntry",
    "LedgerId",
    "LedgerMetadata",
    "LedgerState",
    "MetadataStore",
    "Operator",
    "QuorumSpec",
    "ReadHandle",
    "Seams",
    "TlsConfig",
    "WriteHandle",
    "errors",
]

_HOME = {
    "NO_ENTRY": "bookkeeper.ids",
    "AuthConfig": "bookkeeper.auth.config",
    "AdvancedHandle": "bookkeeper.client.write.advanced_handle",
    "BookKeeper": "bookkeeper.client.bookkeeper",
    "BookKeeperError": "bookkeeper.errors",
    "BookieId": "bookkeeper.ids",
    "ClientConfig": "bookkeeper.client.config",
    "DigestType": "bookkeeper.ledger",
    "EncryptionConfig": "bookkeeper.encryption",
    "EntryId": "bookkeeper.ids",
    "KeyProvider": "bookkeeper.encryption",
    "LedgerEntry": "bookkeeper.client.entry",
    "LedgerId": "bookkeeper.ids",
    "LedgerMetadata": "bookkeeper.ledger",
    "LedgerState": "bookkeeper.ledger",
    "MetadataStore": "bookkeeper.meta.store",
    "Operator": "bookkeeper.client.operators",
    "QuorumSpec": "bookkeeper.ledger",
    "ReadHandle": "bookkeeper.client.read.read_handle",
    "Seams": "bookkeeper.seams",
    "TlsConfig": "bookkeeper.net.tls",
    "WriteHandle": "bookkeeper.client.write.write_handle",
}
"""Exported name -> the module it lives in."""


def __getattr__(name: str) -> object:
    if name == "errors":
        return import_module("bookkeeper.errors")
    if (home := _HOME.get(name)) is None:
        raise AttributeError(f"module 'bookkeeper' has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
